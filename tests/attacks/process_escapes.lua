-- expect: failure
-- says: [31m
-- run: printf
-- deadline: 5000
return function() error(tool.failure(process.run({ "printf", "\\033[31m\\033]0;owned\\007" }).stdout)) end
