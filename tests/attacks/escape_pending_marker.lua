-- expect: timeout or script or ok
-- Yielding what the engine's own waits yield must not confuse it.
return function()
  local co = coroutine.create(function() task.wait(60) end)
  for i = 1, 100 do coroutine.resume(co) end
  return "done"
end
