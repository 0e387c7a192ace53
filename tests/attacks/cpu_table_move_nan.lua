-- expect: script
-- says: not an integer of 32 bits
-- Luau takes what is not a number for the lowest integer: from there to the last are a billion.
return function() table.move({}, 0 / 0, -1200000000, -2e9, {}) end
