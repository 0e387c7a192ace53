-- expect: timeout or script or ok
-- Yielding the engine's own wait marker must have no effect.
return function()
  local co = coroutine.create(function() task.wait(60) end)
  for i = 1, 100 do coroutine.resume(co) end
  return "done"
end
