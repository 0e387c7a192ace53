-- expect: timeout
return function() local b = buffer.create(1000000) while true do buffer.fill(b, 0, 1) end end
