-- expect: timeout
return function() while true do print("x") tool.progress(1, "x") end end
