-- expect: script
return function() coroutine.wrap(function() error(string.rep("x", 8000000)) end)() end
