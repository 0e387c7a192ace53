-- expect: script or memory or timeout
local function deep() pcall(deep) return deep() end
return deep
