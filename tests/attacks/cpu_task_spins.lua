-- expect: timeout
return function() task.spawn(function() while true do end end) task.wait(60) end
