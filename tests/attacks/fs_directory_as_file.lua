-- expect: script
-- deadline: 5000
-- says: is not a regular file
-- read: box/
return function() return fs.read("box/dir") end
