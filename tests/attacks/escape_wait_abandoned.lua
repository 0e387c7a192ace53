-- expect: ok
-- says: done
-- twice: true
-- Coroutines that are left waiting must not affect the next call.
return function()
  for i = 1, 100 do
    local co = coroutine.create(function() task.wait(60) end)
    task.spawn(function() coroutine.resume(co) end)
  end
  task.wait(0.01)
  return "done"
end
