-- expect: timeout
-- run: sh
-- whoever stops the call ends its programs; the script's thread is held
return function()
  task.spawn(process.run, { "sh", "-c", "trap '' TERM; exec sleep 300" })
  task.wait(0.05)
  while true do end
end
