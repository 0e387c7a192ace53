local git = require("./lib/git")

-- Maximum length of the diff in bytes: a model gets 64 KiB of a result.
local MOST = 50000

return function(path, staged, since)
  -- Do not run external diff programs that the repository configures.
  local arguments = { "diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all" }
  if staged then
    table.insert(arguments, "--cached")
  end
  if since then
    table.insert(arguments, since)
  end
  table.insert(arguments, "--")
  if path then
    table.insert(arguments, path)
  end
  local diff, truncated = git(arguments)
  if diff == "" and path and not fs.exists(path) then
    error(tool.failure(`{path} does not exist and has no changes in git`))
  end
  if diff == "" then
    return { diff = "", note = "no changes" }
  end
  if #diff > MOST then
    -- Truncate at the end of a line.
    diff = string.match(string.sub(diff, 1, MOST), "^(.*\n)") or string.sub(diff, 1, MOST)
    truncated = true
  end
  return { diff = diff, more = truncated or nil }
end
