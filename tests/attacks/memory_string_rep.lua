-- expect: memory or script
return function() return #string.rep("x", 2000000000) end
