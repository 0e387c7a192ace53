-- expect: script
-- says: without calling
-- async: true
return function(done) coroutine.create(function() done(1) end) end
