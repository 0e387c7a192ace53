-- expect: ok
-- says: ,true,true]
-- run: sh
-- deadline: 3000
return function()
  local run = process.run({ "sh", "-c", "cat /dev/zero" }, { timeout = 0.7, max_output = 1000 })
  return { #run.stdout, run.truncated, run.timed_out }
end
