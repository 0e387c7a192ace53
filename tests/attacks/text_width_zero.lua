-- expect: script
-- says: the width must be from 1
return function() return text.wrap("a b c", 0) end
