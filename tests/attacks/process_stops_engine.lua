-- expect: ok
-- says: alive
-- run: sh
-- deadline: 20000
-- The parent of a program is its guard, whose parent is the engine.
return function()
  process.run({ "sh", "-c", "kill -STOP $PPID; kill -KILL $PPID; kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat)" })
  return "alive"
end
