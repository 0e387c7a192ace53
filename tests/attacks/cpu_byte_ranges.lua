-- expect: timeout or memory
return function()
  local text = string.rep("a", 2000000)
  while true do
    pcall(string.byte, text, "1", "1e9")
    pcall(string.byte, text, 1, 900000)
    pcall(utf8.codepoint, text, "1", "900000")
    pcall(utf8.len, text, "1", -1)
    pcall(utf8.offset, text, "1e9", "1")
    pcall(utf8.offset, text, -1e9)
    pcall(string.char, unpack(table.create(7000, "65")))
    pcall(utf8.char, unpack(table.create(7000, "65")))
    pcall(select, "-1", unpack(table.create(7000, 1)))
  end
end
