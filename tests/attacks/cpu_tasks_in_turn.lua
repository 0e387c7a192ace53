-- expect: timeout
return function()
  for i = 1, 500 do
    task.spawn(function() while true do task.wait(0) end end)
  end
  task.wait(60)
end
