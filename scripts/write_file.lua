return function(path, text)
  local before = fs.stat(path)
  if before and before.kind == "directory" then
    error(tool.failure(`{path} is a folder`))
  end
  fs.write(path, text, { parents = true })
  return { path = path, bytes = #text, created = before == nil }
end
