-- expect: unserialisable
-- says: 100000 values
return function() local t = {} for i = 1, 100001 do t[i] = 1 end return t end
