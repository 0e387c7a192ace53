-- expect: permission
return function()
  for i = 1, 500 do task.spawn(fs.read, "/dev/zero") end
  task.wait(1)
end
