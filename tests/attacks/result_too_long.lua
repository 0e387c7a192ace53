-- expect: unserialisable
-- says: 1024 KiB
return function() return string.rep("x", 1100000) end
