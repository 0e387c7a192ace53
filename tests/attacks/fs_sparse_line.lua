-- expect: script or timeout
-- says: s
-- read: box/
return function() return fs.lines("box/sparse") end
