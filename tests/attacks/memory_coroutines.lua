-- expect: memory
return function() local t = {} while true do t[#t + 1] = coroutine.create(print) end end
