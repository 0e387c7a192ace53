-- expect: ok
-- says: main
-- async: true
-- twice: true
return function(done)
  task.spawn(function() task.wait(0.001) done("task") end)
  done("main")
end
