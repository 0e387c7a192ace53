-- expect: timeout
return function()
  local t = setmetatable({}, { __index = function() while true do end end })
  return t.x
end
