-- expect: script
-- says: 4 million elements
return function() table.move({}, 1.5, "0x3fffffff", "-2e9", {}) end
