-- expect: timeout
return function()
  while true do xpcall(function() while true do end end, pcall, function() while true do end end) end
end
