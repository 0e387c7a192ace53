-- expect: memory
-- read: box/
-- deadline: 2000
return function()
  local kept = {}
  for i = 1, 500 do
    task.spawn(function() kept[i] = fs.read_bytes("box/sparse", { limit = 8388608 - i }) end)
  end
  task.wait(10)
end
