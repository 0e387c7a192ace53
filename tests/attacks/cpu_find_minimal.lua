-- expect: timeout
return function() return string.rep("a", 300000):find(".-.-.-.-b") end
