-- expect: memory or script
return function() return #string.rep(string.rep("x", 1000000), 1000000) end
