-- expect: timeout
return function()
  return setmetatable({}, { __concat = function() while true do end end }) .. "x"
end
