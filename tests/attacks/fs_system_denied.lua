-- expect: permission
-- says: a part of the running system
-- read: /
return function() return fs.read("/proc/self/environ") end
