-- expect: script
-- says: 4 million elements
-- Positions written as text, far beyond what the table holds.
return function() table.move({}, "1", "1e9", "-1e9") end
