-- expect: ok
-- says: null
-- async: true
return function(done) done() end
