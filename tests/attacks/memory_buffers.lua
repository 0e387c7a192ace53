-- expect: memory
return function() local t = {} while true do t[#t + 1] = buffer.create(100000) end end
