-- expect: unserialisable
-- path: .next
return function() return { next = coroutine.wrap(function() end) } end
