-- expect: script
-- deadline: 5000
-- says: arguments
-- run: printf
return function() return process.run({ "printf", string.rep("x", 1100000) }) end
