-- expect: ok
-- says: nothing
-- run: sh
-- deadline: 20000
-- The canary is a variable that Cargo sets for this test. It is in the environment and memory of a program's ancestors.
return function()
  local script = [[
    process=$PPID
    while [ "$process" -gt 1 ]; do
      cat "/proc/$process/environ" "/proc/$process/auxv" "/proc/$process/maps"
      process=$(cut -d ' ' -f 4 "/proc/$process/stat")
    done 2>/dev/null
  ]]
  local seen = process.run({ "sh", "-c", script }).stdout
  return if seen == "" then "nothing" else seen
end
