-- expect: timeout
-- run: sh
-- Each process starts the next one and exits.
return function() return process.run({ "sh", "-c", "while :; do (exec true) & done" }) end
