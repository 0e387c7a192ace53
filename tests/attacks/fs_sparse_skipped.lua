-- expect: timeout
-- read: box/
return function() return fs.lines("box/sparse", { from = 2 }) end
