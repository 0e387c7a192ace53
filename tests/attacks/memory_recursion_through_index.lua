-- expect: script or memory
local t = setmetatable({}, { __index = function(t, key) return t[key .. "x"] end })
return function() return t.x end
