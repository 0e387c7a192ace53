-- expect: timeout or memory
return function()
  local t = table.create(300000, 1)
  while true do table.clone(t) end
end
