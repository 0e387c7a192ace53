-- expect: ok
-- says: box/a.txt
-- read: box/
return function() return (fs.glob("box/**", { gitignore = true })) end
