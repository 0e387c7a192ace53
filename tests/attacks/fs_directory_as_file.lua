-- expect: script
-- says: is not a regular file
-- read: box/
return function() return fs.read("box/dir") end
