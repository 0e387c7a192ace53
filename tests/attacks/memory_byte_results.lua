-- expect: script or memory
return function() return select("#", string.byte(string.rep("x", 8000000), 1, -1)) end
