-- expect: ok
-- says: true
return function() return string.dump == nil and load == nil and loadstring == nil end
