local attempt = require("./lib/attempt")
local files = require("./lib/files")

local MOST = 500

return function(pattern, path)
  local root = path or "."
  files.expect_folder(root)
  if string.sub(pattern, 1, 1) == "/" then
    error(tool.failure("the pattern is relative to the folder that is searched: it does not start with a slash"))
  end
  -- A name alone is looked for in every folder, as a person would mean it.
  if not string.find(pattern, "/", 1, true) and pattern ~= "*" then
    pattern = `**/{pattern}`
  end
  local paths, more = attempt(fs.glob, pattern, { root = root, gitignore = true, limit = MOST })
  return { paths = json.array(paths), more = more or nil }
end
