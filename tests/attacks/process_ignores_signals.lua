-- expect: timeout
-- run: sh
return function()
  return process.run({ "sh", "-c", "trap '' TERM HUP INT QUIT PIPE; while :; do sleep 1; done" })
end
