-- expect: script or memory
return function() return select("#", table.unpack({}, 1, 10000000)) end
