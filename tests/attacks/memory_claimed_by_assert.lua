-- expect: script
-- says: not enough memory
return function() assert(false, "not enough memory") end
