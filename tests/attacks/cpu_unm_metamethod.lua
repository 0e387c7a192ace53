-- expect: timeout
return function() return -setmetatable({}, { __unm = function() while true do end end }) end
