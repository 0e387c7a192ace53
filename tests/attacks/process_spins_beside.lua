-- expect: timeout
-- run: sh
-- The programs of a stopped call end although the script's thread is blocked.
return function()
  task.spawn(process.run, { "sh", "-c", "trap '' TERM; exec sleep 300" })
  task.wait(0.05)
  while true do end
end
