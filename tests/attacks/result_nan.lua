-- expect: unserialisable
-- path: .n
-- says: NaN
return function() return { n = 0 / 0 } end
