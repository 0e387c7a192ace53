-- expect: script
-- says: without calling
-- async: true
return function(done) task.delay(0.01, print) end
