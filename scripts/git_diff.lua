local git = require("./lib/git")

local MOST = 60000

return function(path, staged, since)
  -- No programs of the repository's choosing make the diff.
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
    error(tool.failure(`there is no {path}, and git knows of no change to it`))
  end
  if diff == "" then
    return { diff = "", note = "nothing has changed" }
  end
  if #diff > MOST then
    -- At the end of a line.
    diff = string.match(string.sub(diff, 1, MOST), "^(.*\n)") or string.sub(diff, 1, MOST)
    truncated = true
  end
  return { diff = diff, more = truncated or nil }
end
