-- expect: ok or script or memory or timeout
local function deep() return xpcall(deep, deep) end
return deep
