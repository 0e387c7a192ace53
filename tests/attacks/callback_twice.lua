-- expect: ok
-- says: 1
-- async: true
return function(done) done(1) done(2) end
