-- expect: ok or timeout
-- run: sh
-- deadline: 3000
-- 0 is the sender's own process group, which must not be that of the engine.
return function() return process.run({ "sh", "-c", "kill -KILL 0" }).signal end
