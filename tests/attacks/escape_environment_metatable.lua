-- expect: ok
-- says: true
return function() return type(getmetatable(_G)) ~= "table" end
