-- expect: unserialisable
-- path: .n[1]
return function() return { n = { 1, math.huge } } end
