-- expect: unserialisable
-- path: .co
return function() return { co = coroutine.create(print) } end
