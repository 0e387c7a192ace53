-- expect: load
-- says: not available while the script loads
-- run: sh
local run = process.run({ "sh", "-c", "true" })
return function() return run end
