-- expect: script
-- says: printf: Argument list too long
-- run: printf
-- deadline: 3000
return function() return process.run({ "printf", string.rep("x", 1000000) }) end
