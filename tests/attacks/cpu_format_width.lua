-- expect: script
return function() return string.format("%99999999d", 1) end
