-- expect: timeout
return function()
  while true do text.find_all(string.rep("A", 4000), ".*[^A-Z]|[A-Z]") end
end
