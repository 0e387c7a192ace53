-- expect: script
-- says: longer than 8 MiB
return function()
  return text.replace_matches(string.rep("a", 3000), "a+", string.rep("$0", 20000))
end
