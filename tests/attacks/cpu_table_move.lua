-- expect: script
-- says: 4 million elements
return function() table.move({}, 1, 2e9, 3) end
