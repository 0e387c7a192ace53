-- expect: ok
-- says: none
-- run: sh
-- deadline: 20000
-- A program has its own session and no terminal.
return function()
  local script = "(exec 3<>/dev/tty) 2>/dev/null && echo terminal || echo none"
  return process.run({ "sh", "-c", script }).stdout
end
