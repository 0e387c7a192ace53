-- expect: timeout or script or memory
return function() while true do pcall(string.pack, string.rep("i", 100000), table.unpack({}, 1, 7000)) end end
