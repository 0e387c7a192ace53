-- expect: permission
-- says: :allow
return function() return fs.read("/etc/passwd") end
