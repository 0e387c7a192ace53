-- expect: script or memory or ok
local function deep() table.sort({ 1, 2, 3 }, function() deep() return true end) end
return function() return deep() end
