-- expect: script or memory
local function deep(n) return 1 + deep(n + 1) end
return function() return deep(0) end
