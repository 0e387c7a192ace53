-- expect: timeout
-- run: sh
-- each starts the next and ends
return function() return process.run({ "sh", "-c", "while :; do (exec true) & done" }) end
