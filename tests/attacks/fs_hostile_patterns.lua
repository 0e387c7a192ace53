-- expect: ok or timeout
-- read: box/
return function()
  for _, pattern in {
    "**/**/**/**/**/**/**/**/**/*", "*a*a*a*a*a*a*a*a*a*a*a*b", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
    string.rep("{", 300), string.rep("{a,", 300), string.rep("[", 500), string.rep("**/", 300), string.rep("\\", 999),
    "[z-a]", "[!", "{", "}", "***", "", "/", "//", "**", string.rep("?", 999), "{" .. string.rep("a*b*c*,", 140) .. "}",
    "[\u{0}-\u{10ffff}]*", "\255*",
  } do
    pcall(fs.glob, pattern, { root = "box", kind = "any", hidden = true })
  end
  return true
end
