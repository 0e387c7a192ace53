-- expect: script
-- says: not an integer of 32 bits
return function() table.move({}, 2 ^ 32 + 1, 2 ^ 32 + 2, -1e9, {}) end
