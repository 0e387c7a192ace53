-- expect: script or memory or timeout or ok
local function deep() task.spawn(deep) task.spawn(deep) task.wait() end
return deep
