local attempt = require("./lib/attempt")
local files = require("./lib/files")

return function(path, text)
  files.expect_writable(path)
  local before = attempt(fs.stat, path)
  if before and before.kind == "directory" then
    error(tool.failure(`{path} is a folder`))
  end
  attempt(fs.write, path, text, { parents = true })
  return { path = path, bytes = #text, created = before == nil }
end
