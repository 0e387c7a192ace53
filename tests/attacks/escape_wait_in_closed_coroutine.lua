-- expect: ok
-- says: done
return function()
  local co
  task.spawn(function() task.wait(0.01) pcall(coroutine.close, co) end)
  co = coroutine.create(function() task.wait(0.05) end)
  coroutine.resume(co)
  return "done"
end
