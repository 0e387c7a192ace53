-- expect: timeout or script or ok
return function() for i = 1, 10, 0 do end return 1 end
