-- expect: script
-- says: is not a regular file
-- write: box/
return function() fs.append("box/pipe", "x") end
