-- expect: timeout
return function() return #text.find_all(string.rep("A", 1000000), ".*[^A-Z]|[A-Z]") end
