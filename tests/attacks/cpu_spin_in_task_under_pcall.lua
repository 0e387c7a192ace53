-- expect: timeout
return function()
  task.spawn(function() while true do pcall(function() while true do end end) end end)
  while true do pcall(task.wait) end
end
