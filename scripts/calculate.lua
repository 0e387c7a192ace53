local compute = require("./lib/expression")

return function(expression)
  return { result = compute(expression) }
end
