-- expect: script or ok or timeout
return function()
  local main = coroutine.running()
  task.spawn(function()
    coroutine.close(main)
    for i = 1, 100 do coroutine.resume(main) end
  end)
  task.wait(0.03)
  return "done"
end
