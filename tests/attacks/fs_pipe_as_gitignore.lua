-- expect: ok
-- deadline: 5000
-- says: box/a.txt
-- read: box/
return function() return (fs.glob("box/**", { gitignore = true })) end
