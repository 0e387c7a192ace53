local files = require("./lib/files")

return function(path, text)
  local before = files.attempt(fs.stat, path)
  if before and before.kind == "directory" then
    error(tool.failure(`{path} is a folder`))
  end
  files.attempt(fs.write, path, text, { parents = true })
  return { path = path, bytes = #text, created = before == nil }
end
