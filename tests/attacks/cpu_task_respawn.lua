-- expect: timeout
local function again() task.spawn(again) end
return function() again() task.wait(60) end
