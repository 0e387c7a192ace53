-- expect: load
-- says: while the script loads
local text = fs.read("x")
return function() end
