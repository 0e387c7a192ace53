-- expect: timeout
-- run: sh
return function()
  local options = { stdin = string.rep("x", 1000000) }
  for i = 1, 300 do task.spawn(process.run, { "sh", "-c", "exec sleep 300" }, options) end
  task.wait(100)
end
