-- expect: timeout or memory
return function()
  local t = table.create(300000, "abc")
  while true do table.concat(t, ", ") end
end
