-- expect: script
-- says: not an integer of 32 bits
-- Luau converts NaN to the lowest integer: a billion positions to the last one.
return function() table.move({}, 0 / 0, -1200000000, -2e9, {}) end
