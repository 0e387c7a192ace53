-- expect: timeout or memory
return function()
  local one, other = buffer.create(2000000), buffer.create(2000000)
  while true do
    pcall(buffer.fill, one, "0", "65", "2e6")
    pcall(buffer.fill, one, -1, 1, 1e308)
    pcall(buffer.copy, one, "0", other, "0", "2e6")
    pcall(buffer.copy, one, 1, one, 0)
    pcall(buffer.readbits, one, "0", "32")
    pcall(buffer.readstring, one, 0, "2e6")
    pcall(buffer.tostring, one)
    pcall(buffer.writestring, one, 0, "x", "4294967297")
  end
end
