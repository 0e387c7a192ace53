-- expect: memory or script
local function f(...) return select("#", ...) + f(..., ...) end
return function() return f(f, f, f, f) end
