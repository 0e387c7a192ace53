-- expect: timeout
return function()
  return string.find(string.rep("a", 60), string.rep("a?", 60) .. string.rep("a", 60) .. "b")
end
