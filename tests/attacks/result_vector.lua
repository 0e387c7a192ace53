-- expect: unserialisable
return function() return vector.create(1, 2, 3) end
