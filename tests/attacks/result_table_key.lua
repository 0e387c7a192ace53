-- expect: unserialisable
return function() return { [{}] = 1 } end
