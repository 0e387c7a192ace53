-- expect: timeout
return function()
  return string.find(string.rep("a", 300), string.rep("a?", 300) .. string.rep("a", 300) .. "b")
end
