-- expect: ok
-- says: 7
-- run: sh
-- deadline: 5000
return function() return process.run({ "sh", "-c", "exec >&- 2>&-; exit 7" }).code end
