-- expect: unserialisable
return function() return { 1, [1.5] = 2 } end
