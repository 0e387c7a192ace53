-- expect: script or memory
local function deep() return coroutine.wrap(deep)() end
return deep
