-- expect: unserialisable
-- path: .s
-- says: UTF-8
return function() return { s = "ab\xFF" } end
