-- expect: script or memory or ok
local function deep() return (string.gsub("x", "x", deep)) end
return function() return deep() end
