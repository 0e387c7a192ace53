-- expect: timeout or script
local function storm() while true do task.spawn(storm) end end
return function() while true do pcall(storm) end end
