-- expect: timeout
return function()
  local long = string.rep("!16Xi16", 100000)
  while true do
    pcall(string.packsize, long)
    pcall(string.pack, string.rep("s", 100000), unpack(table.create(7000, "x")))
    pcall(string.unpack, long, string.rep("x", 1000000), "1")
    pcall(string.unpack, string.rep("z", 100000), string.rep("x", 1000000))
  end
end
