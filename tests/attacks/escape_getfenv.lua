-- expect: ok
-- says: true
return function() return getfenv == nil and setfenv == nil end
