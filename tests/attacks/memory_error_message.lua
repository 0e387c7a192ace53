-- expect: script
return function() error(string.rep("x", 8000000)) end
