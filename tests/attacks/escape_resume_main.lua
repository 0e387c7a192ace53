-- expect: script or ok or timeout
-- A task resumes the thread that the engine polls.
return function()
  local main = coroutine.running()
  task.spawn(function()
    for i = 1, 100 do coroutine.resume(main) end
    task.wait(0.005)
    for i = 1, 100 do pcall(coroutine.resume, main, "x") end
  end)
  task.wait(0.03)
  return "done"
end
