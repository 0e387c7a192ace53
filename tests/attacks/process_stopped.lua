-- expect: timeout
-- run: sh
return function() return process.run({ "sh", "-c", "kill -STOP $$" }) end
