-- expect: script
return function() setmetatable(tool, {}) end
