-- expect: timeout
return function() while true do pcall(pcall, pcall, function() while true do end end) end end
