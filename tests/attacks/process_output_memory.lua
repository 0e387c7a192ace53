-- expect: memory or timeout
-- run: sh
-- deadline: 5000
return function()
  local kept = {}
  for i = 1, 9 do
    task.spawn(function()
      kept[i] = process.run({ "sh", "-c", "head -c 800000" .. i .. " /dev/zero" }, { max_output = 8388608 })
    end)
  end
  repeat task.wait(0.01) until #kept == 9
end
