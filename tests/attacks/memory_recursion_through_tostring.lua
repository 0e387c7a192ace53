-- expect: script or memory
local mt = {}
mt.__tostring = function(t) return tostring(setmetatable({}, mt)) end
return function() return tostring(setmetatable({}, mt)) end
