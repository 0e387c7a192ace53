-- expect: script
-- says: readonly
return function() json.decode = nil end
