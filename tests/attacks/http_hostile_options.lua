-- expect: permission
-- Metatables of options are ignored: no script code runs while a request is read.
return function()
  local loud = { __index = function() while true do end end, __len = function() return 1e9 end, __iter = error, __tostring = error }
  http.get("http://127.0.0.1/", setmetatable({
    query = setmetatable({ a = setmetatable({ 1 }, loud) }, loud),
    headers = setmetatable({ b = setmetatable({ 1 }, loud) }, loud),
  }, loud))
end
