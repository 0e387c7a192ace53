-- expect: timeout
return function()
  local b = buffer.create(8000000)
  while true do buffer.fill(b, 0, 1) buffer.copy(b, 0, b) end
end
