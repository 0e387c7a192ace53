-- expect: script or ok or timeout
return function()
  local other
  task.spawn(function() other = coroutine.running() task.wait(0.01) return 1 end)
  task.wait(0.002)
  coroutine.close(other)
  coroutine.resume(other)
  task.wait(0.03)
  return "done"
end
