-- expect: ok
-- says: true
return function()
  local mark = getmetatable(vector.create(1, 2, 3))
  return mark == nil or not pcall(function() mark.__index = function() return 1 end end)
end
