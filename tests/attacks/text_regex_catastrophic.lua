-- expect: ok or timeout
-- deadline: 1000
return function()
  local text_of_a = string.rep("a", 50000)
  for _, pattern in { "(a*)*b", "(a|aa)+$b", "(x+x+)+y", "(a+)+!", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)(.*)(.*)(.*)(.*)[^a]" } do
    text.matches(text_of_a, pattern)
    text.find(string.sub(text_of_a, 1, 4000), pattern)
  end
  return true
end
