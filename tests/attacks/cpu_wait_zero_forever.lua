-- expect: timeout
return function() while true do task.wait(0) end end
