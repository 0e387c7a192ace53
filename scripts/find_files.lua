local attempt = require("./lib/attempt")
local files = require("./lib/files")

local MOST = 500

return function(pattern, path)
  local root = path or "."
  files.expect_folder(root)
  if string.sub(pattern, 1, 1) == "/" then
    error(tool.failure("the pattern must not start with a slash: it is relative to the searched folder"))
  end
  -- A name without a folder is searched for in all folders.
  if not string.find(pattern, "/", 1, true) and pattern ~= "*" then
    pattern = `**/{pattern}`
  end
  local paths, more = attempt(fs.glob, pattern, { root = root, gitignore = true, limit = MOST })
  return { paths = json.array(paths), more = more or nil }
end
