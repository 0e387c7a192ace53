-- expect: ok or script
return function() return table.concat({}, "x", 1, 2 ^ 53) end
