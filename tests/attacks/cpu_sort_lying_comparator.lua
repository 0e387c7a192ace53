-- expect: timeout or script
return function()
  local t = {}
  for i = 1, 200000 do t[i] = i end
  while true do pcall(table.sort, t, function() return true end) end
end
