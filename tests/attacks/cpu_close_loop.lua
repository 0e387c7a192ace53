-- expect: timeout
return function()
  while true do
    local co = coroutine.create(function() coroutine.yield() end)
    coroutine.resume(co)
    coroutine.close(co)
  end
end
