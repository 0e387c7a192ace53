-- expect: timeout
return function()
  local t = table.create(400000, 1)
  while true do table.remove(t, 1) t[#t + 1] = 1 end
end
