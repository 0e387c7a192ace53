-- expect: timeout or memory
return function()
  local t, i = {}, 0
  while true do i += 1 t[i * 4294967296] = 1 end
end
