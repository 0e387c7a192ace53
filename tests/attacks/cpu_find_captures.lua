-- expect: timeout
return function() return string.rep("a", 400000):find("(.*)%1b") end
