-- expect: script
-- says: readonly
return function() string.find = nil end
