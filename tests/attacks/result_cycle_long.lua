-- expect: unserialisable
-- path: .a.b[0].c
return function() local t = { a = { b = { {} } } } t.a.b[1].c = t return t end
