-- expect: timeout or script or memory
return function()
  local t = {}
  for i = 1, 10000 do t[i] = i end
  while true do
    pcall(table.sort, t, function(a, b) t[#t + 1] = a table.remove(t, 1) return a < b end)
  end
end
