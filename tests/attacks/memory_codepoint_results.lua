-- expect: script or memory
return function() return select("#", utf8.codepoint(string.rep("x", 8000000), 1, -1)) end
