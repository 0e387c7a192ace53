-- expect: ok or script
return function() return tonumber(string.rep("9", 4000000)) == math.huge end
