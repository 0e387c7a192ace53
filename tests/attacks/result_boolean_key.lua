-- expect: unserialisable
-- says: boolean
return function() return { [true] = 1 } end
