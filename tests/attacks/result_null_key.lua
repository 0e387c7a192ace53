-- expect: unserialisable
return function() return { [json.null] = 1 } end
