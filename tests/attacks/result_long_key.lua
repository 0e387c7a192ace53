-- expect: unserialisable
-- says: larger than
return function() return { [string.rep("k", 2000000)] = 1 } end
