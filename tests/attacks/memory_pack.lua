-- expect: script or memory
return function()
  local t = {}
  while true do t = table.pack(table.unpack(t), table.unpack(table.create(7000, t))) t[#t + 1] = table.clone(t) end
end
