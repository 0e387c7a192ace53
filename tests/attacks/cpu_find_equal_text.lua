-- expect: timeout or script
return function()
  local mark = { __eq = table.maxn }
  local long = setmetatable(table.create(500000, 0), mark)
  local t = table.create(10000, long)
  while true do table.find(t, setmetatable({}, { __eq = table.maxn })) table.find(t, setmetatable({}, mark)) end
end
