-- expect: ok or timeout
-- read: box/
-- write: box/
-- No reader sees an incomplete file.
return function()
  local texts = { string.rep("a", 10000), string.rep("b", 20000) }
  fs.write("box/storm", texts[1])
  local left = 40
  for i = 1, left do
    task.spawn(function()
      fs.write("box/storm", texts[i % 2 + 1])
      local seen = fs.read("box/storm")
      assert(seen == texts[1] or seen == texts[2], #seen)
      left -= 1
    end)
  end
  repeat task.wait() until left == 0
end
