-- expect: timeout
local t = setmetatable({}, { __tostring = function() while true do end end })
return function() return string.format("%*", t) end
