-- expect: unserialisable
-- path: .f
-- async: true
return function(done) done({ f = print }) end
