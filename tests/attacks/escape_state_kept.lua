-- expect: ok
-- says: 1
-- twice: true
seen = (seen or 0) + 1
return function() return seen end
