-- expect: timeout
return function() for i = 1, math.huge do end end
