-- expect: unserialisable
-- says: 64 levels
return function() local t = {} for i = 1, 70 do t = { t } end return t end
