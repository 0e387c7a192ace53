-- expect: failure
return function() error(tool.failure(string.rep("x", 4000000))) end
