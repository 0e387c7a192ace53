-- expect: timeout
-- twice: true
-- Unfinished waits in coroutines must not affect the next call.
return function()
  for i = 1, 10 do
    task.spawn(function()
      pcall(coroutine.wrap(function() fs.read("/etc/passwd") end))
    end)
    coroutine.resume(coroutine.create(function() coroutine.yield() end))
  end
  while true do task.wait(0.01) end
end
