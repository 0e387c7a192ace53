-- expect: timeout
local t = setmetatable({}, { __call = function() while true do end end })
return function() while true do pcall(t) end end
