-- expect: permission
-- deadline: 5000
-- says: it is on a system file system
-- read: /
return function() return fs.read("/proc/self/environ") end
