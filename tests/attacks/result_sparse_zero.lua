-- expect: unserialisable
-- says: sparse
return function() return { [0] = 1 } end
