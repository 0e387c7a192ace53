-- expect: script
return function() error({ message = string.rep("x", 8000000) }) end
