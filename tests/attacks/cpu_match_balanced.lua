-- expect: timeout
return function() return string.match(string.rep("(", 1000000), "%b()") end
