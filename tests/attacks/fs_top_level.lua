-- expect: load
-- says: not available while the script loads
-- write: box/
fs.write("box/x", "x")
return function() end
