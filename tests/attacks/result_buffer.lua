-- expect: unserialisable
return function() return buffer.create(1) end
