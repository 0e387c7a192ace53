return function(how)
  if how == "spin" then
    while true do
    end
  elseif how == "function" then
    return { ok = true, called = print }
  elseif how == "failure" then
    error(tool.failure("there is no such thing"))
  elseif how == "host" then
    return env.get("EDITOR")
  elseif how == "swallow" then
    return { caught = not pcall(fs.read, "anything") }
  elseif how == "forbidden" then
    return fs.read("notes/a.md")
  end
  local nothing = nil
  return nothing.field
end
