-- expect: timeout
return function() while true do pcall(error, tool.failure("x")) end end
