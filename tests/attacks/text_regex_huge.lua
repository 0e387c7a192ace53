-- expect: script
-- says: the pattern is too big
return function() return text.matches("a", "(a{1000}){1000}") end
