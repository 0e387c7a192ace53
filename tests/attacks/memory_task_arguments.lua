-- expect: memory or script
return function()
  for i = 1, 100000 do task.delay(60, print, string.rep("x", 100000 + i)) end
end
