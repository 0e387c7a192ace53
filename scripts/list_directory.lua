local attempt = require("./lib/attempt")
local files = require("./lib/files")

return function(path)
  path = path or "."
  files.expect_folder(path)
  local entries = json.array {}
  for index, entry in attempt(fs.list, path) do
    entries[index] = { name = entry.name, kind = entry.kind, size = if entry.kind == "file" then entry.size else nil }
  end
  return { entries = entries }
end
