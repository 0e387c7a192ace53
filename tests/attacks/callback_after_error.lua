-- expect: script
-- says: first
-- async: true
return function(done)
  task.delay(0, done, "late")
  error("first")
end
