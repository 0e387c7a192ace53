-- expect: timeout or script
-- Each comparison searches a long list.
return function()
  local long = table.create(100000, 0)
  local t = {}
  for i = 1, 20000 do t[i] = long end
  while true do pcall(table.sort, t, table.find) end
end
