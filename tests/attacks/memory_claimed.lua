-- expect: script
-- says: not enough memory
return function() error("not enough memory", 0) end
