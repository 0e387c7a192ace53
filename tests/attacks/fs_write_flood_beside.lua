-- expect: script or timeout or memory
-- write: box/
return function()
  local much = string.rep("x", 4194304)
  for i = 1, 500 do task.spawn(fs.append, "box/flood", much) end
  task.wait(10)
end
