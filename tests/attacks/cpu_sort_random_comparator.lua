-- expect: timeout
return function()
  local t = {}
  for i = 1, 100000 do t[i] = i end
  while true do pcall(table.sort, t, function() return math.random() < 0.5 end) end
end
