-- expect: script
-- deadline: 5000
-- says: pattern
return function()
  pcall(text.matches, "a", string.rep("a{1000}", 1000))
  pcall(text.matches, "a", string.rep("(?i)", 2000))
  pcall(text.matches, "a", string.rep("[[", 4000))
  return text.matches("a", string.rep("(", 4000) .. string.rep(")", 4000))
end
