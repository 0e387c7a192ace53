-- expect: unserialisable
-- path: .items[2]
-- says: unserialisable result at .items[2]: function
return function() return { items = { 1, 2, print } } end
