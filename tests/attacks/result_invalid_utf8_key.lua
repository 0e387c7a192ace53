-- expect: unserialisable
return function() return { ["\xFF"] = 1 } end
