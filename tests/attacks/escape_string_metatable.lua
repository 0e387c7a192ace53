-- expect: script
return function() getmetatable("").__index = nil end
