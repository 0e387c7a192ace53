-- expect: timeout
return function() local n = 1 while true do n = bit32.bxor(bit32.lrotate(n, 3), 5) end end
