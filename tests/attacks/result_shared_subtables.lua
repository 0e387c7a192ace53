-- expect: unserialisable
-- says: values
-- 2^30 values from 30 tables.
return function() local t = { 1 } for i = 1, 30 do t = { t, t } end return t end
