-- expect: unserialisable
-- says: 1024 KiB
return function() local s = string.rep("x", 1000) local t = {} for i = 1, 2000 do t[i] = s end return t end
