-- expect: script
-- says: without calling
-- async: true
return function(done)
  local co = coroutine.create(function() coroutine.yield() done(1) end)
  coroutine.resume(co)
  coroutine.close(co)
  pcall(coroutine.resume, co)
end
