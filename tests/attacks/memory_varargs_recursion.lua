-- expect: script or memory
local function f(...) return f(1, ...) end
return function() return f() end
