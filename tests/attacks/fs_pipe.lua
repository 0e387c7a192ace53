-- expect: script
-- deadline: 5000
-- says: is not a regular file
-- write: box/
return function() fs.append("box/pipe", "x") end
