-- expect: script or memory
local t
t = setmetatable({}, { __concat = function() return t .. t end })
return function() return t .. t end
