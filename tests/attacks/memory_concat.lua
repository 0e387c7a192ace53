-- expect: memory
return function()
  local t = {}
  local s = string.rep("x", 100000)
  for i = 1, 100000 do t[i] = s end
  return #table.concat(t)
end
