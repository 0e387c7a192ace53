-- expect: ok
-- says: true
return function() return newproxy == nil and collectgarbage == nil end
