-- expect: unserialisable
-- says: sparse
return function() return { [1000000] = 1 } end
