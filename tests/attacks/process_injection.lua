-- expect: ok
-- says: ["; id","$(id)","`id`","| id","&& id","\n id","-e","%n","*","~","\\","'\"","\u001b[31m"]
-- run: printf
-- deadline: 5000
return function()
  local given = { "; id", "$(id)", "`id`", "| id", "&& id", "\n id", "-e", "%n", "*", "~", "\\", "'\"", "\27[31m" }
  local argv = { "printf", "%s\1" }
  for _, one in given do table.insert(argv, one) end
  local got = string.split(process.run(argv).stdout, "\1")
  table.remove(got)
  return got
end
