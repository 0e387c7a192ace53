-- expect: timeout or script
return function()
  local long = table.create(5000, 1)
  local t = {}
  for i = 1, 50000 do t[i] = setmetatable({}, { __lt = function() return false end }) end
  for i = 1, 50000, 2 do t[i] = long end
  while true do pcall(table.sort, t, table.unpack) end
end
