-- expect: timeout
return function()
  local t = setmetatable(table.create(500000, 1), {})
  getmetatable(t).__newindex = table.insert
  while true do table.insert(t, "1", 1) table.remove(t, "1") end
end
