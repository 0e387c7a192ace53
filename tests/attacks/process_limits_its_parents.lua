-- expect: ok
-- says: available 64
-- run: sh
-- deadline: 20000
-- A limit of CPU time would end the engine. This limit is harmless if the attack succeeds. A program may change its own.
return function()
  local script = [[
    command -v prlimit > /dev/null && echo "available $(prlimit --nofile=64:64 sh -c 'ulimit -n')"
    process=$PPID
    while [ "$process" -gt 1 ]; do
      prlimit --pid "$process" --msgqueue=1:1 && echo "limited $process"
      process=$(cut -d ' ' -f 4 "/proc/$process/stat")
    done 2>/dev/null
  ]]
  local seen = process.run({ "sh", "-c", script }).stdout
  if string.find(seen, "limited") then error(seen) end
  return seen
end
