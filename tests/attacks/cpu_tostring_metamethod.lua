-- expect: timeout
return function()
  return tostring(setmetatable({}, { __tostring = function() while true do end end }))
end
