-- expect: script or memory
local t
t = setmetatable({}, { __call = function() return 1 + t() end })
return function() return t() end
