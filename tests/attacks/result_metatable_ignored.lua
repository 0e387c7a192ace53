-- expect: ok
-- says: {}
return function()
  return setmetatable({}, { __index = function() while true do end end, __iter = function() while true do end end })
end
