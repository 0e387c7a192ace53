-- expect: ok
-- says: []
-- run: printf
return function()
  local got = json.array({})
  for _, name in {
    "sh", "/bin/sh", "/usr/bin/printf", "./printf", "../printf", "printf ", " printf", "PRINTF", "printf\n", "printf;sh", "printf\0sh",
    "", ".", "/", "box/../printf", "print", "printff", "$(sh)", "-c", "sh -c printf",
  } do
    if pcall(process.run, { name, "-c", "id" }) then table.insert(got, name) end
  end
  if pcall(process.run, { [2] = "printf" }) then table.insert(got, "second") end
  if pcall(process.run, setmetatable({}, { __index = function() return "printf" end })) then table.insert(got, "index") end
  return got
end
