-- expect: script
-- says: without calling
-- async: true
return function(done) _done = done end
