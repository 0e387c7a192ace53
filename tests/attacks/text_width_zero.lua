-- expect: script
-- deadline: 5000
-- says: the width must be from 1
return function() return text.wrap("a b c", 0) end
