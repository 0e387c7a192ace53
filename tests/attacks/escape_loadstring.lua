-- expect: ok
-- says: true
return function() return loadstring == nil and load == nil and dofile == nil and loadfile == nil end
