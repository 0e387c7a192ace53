-- expect: ok
-- write: box/
-- twice: true
return function()
  local text = string.rep("x", 1000000)
  for i = 1, 100 do task.spawn(fs.write, "box/abandoned", text) end
end
