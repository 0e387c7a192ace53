-- expect: ok
-- run: sh
-- twice: true
return function()
  for i = 1, 10 do task.spawn(process.run, { "sh", "-c", "exec sleep 300" }) end
  return true
end
