-- expect: timeout
-- run: sh
return function() return process.run({ "sh", "-c", "sleep 300" }, { stdin = string.rep("x", 4000000) }) end
