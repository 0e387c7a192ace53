-- expect: timeout
return function() for i in function() return 1 end do end end
