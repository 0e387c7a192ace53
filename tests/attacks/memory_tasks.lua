-- expect: script or memory
return function()
  for i = 1, 1000000 do task.delay(60, print) end
end
