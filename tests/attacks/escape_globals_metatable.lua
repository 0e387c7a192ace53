-- expect: script
return function() setmetatable(_G, { __index = function() return 1 end }) return 1 end
