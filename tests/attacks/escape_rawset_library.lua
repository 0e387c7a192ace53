-- expect: script
-- says: readonly
return function() rawset(math, "floor", 1) end
