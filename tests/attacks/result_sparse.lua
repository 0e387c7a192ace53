-- expect: unserialisable
-- says: sparse
return function() return { 1, nil, 3 } end
