-- expect: unserialisable
-- says: mixed
return function() return { 1, 2, x = 3 } end
