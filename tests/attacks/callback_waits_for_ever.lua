-- expect: timeout
-- async: true
return function(done) task.wait(60) done(1) end
