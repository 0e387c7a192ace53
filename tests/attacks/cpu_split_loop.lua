-- expect: timeout
return function() local s = string.rep("a,", 100000) while true do string.split(s) end end
