-- expect: script
-- says: arguments
-- run: printf
return function() return process.run({ "printf", string.rep("x", 1100000) }) end
