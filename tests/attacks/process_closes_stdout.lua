-- expect: timeout
-- run: sh
return function() return process.run({ "sh", "-c", "exec >&- 2>&-; sleep 300" }) end
