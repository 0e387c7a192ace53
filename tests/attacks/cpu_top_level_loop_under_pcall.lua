-- expect: timeout
pcall(function() while true do end end)
while true do pcall(function() while true do end end) end
