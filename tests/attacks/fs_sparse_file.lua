-- expect: script
-- says: longer than 8 MiB
-- read: box/
return function() return fs.read("box/sparse") end
