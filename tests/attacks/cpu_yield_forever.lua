-- expect: timeout
return function() while true do coroutine.yield() end end
