-- expect: unserialisable
-- async: true
return function(done) done({ done }) end
