-- expect: timeout
return function()
  local t = table.create(500000, 1)
  while true do table.find(t, 2) end
end
