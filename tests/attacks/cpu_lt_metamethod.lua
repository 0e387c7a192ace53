-- expect: timeout
local t = setmetatable({}, { __lt = function() while true do end end })
return function() return t < t end
