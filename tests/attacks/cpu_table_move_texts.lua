-- expect: script
-- says: 4 million elements
-- Positions as text, far outside of the table.
return function() table.move({}, "1", "1e9", "-1e9") end
