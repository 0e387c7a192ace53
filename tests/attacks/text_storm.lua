-- expect: timeout
return function()
  local long, longer = string.rep("a", 4000000), string.rep("a", 4000001)
  for i = 1, 900 do task.spawn(text.replace_matches, long, "a", "b") end
  for i = 1, 90 do task.spawn(text.diff, long, longer) end
  task.wait(100)
end
