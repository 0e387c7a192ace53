-- expect: unserialisable
-- path: .self
-- says: contains itself
return function() local t = {} t.self = t return t end
