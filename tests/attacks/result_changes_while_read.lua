-- expect: ok or unserialisable
return function()
  local t = setmetatable({}, { __iter = function() error("iterated") end, __len = function() return 5 end })
  t[1] = 1
  return t
end
