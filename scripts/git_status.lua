local git = require("./lib/git")

-- The status letters of an entry; the first is for staged changes, the second for unstaged changes.
local WORDS = { M = "modified", T = "type changed", A = "added", D = "deleted", R = "renamed", C = "copied" }

return function()
  local status = { staged = json.array {}, changed = json.array {}, untracked = json.array {}, conflicts = json.array {} }
  local text = git { "status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z" }
  local entries = string.split(text, "\0")
  local at = 1
  while at <= #entries do
    local entry = entries[at]
    local kind = string.sub(entry, 1, 1)
    if kind == "#" then
      local key, value = string.match(entry, "^# branch%.(%S+) (.*)$")
      if key == "head" then
        status.branch = value
      elseif key == "upstream" then
        status.upstream = value
      elseif key == "ab" then
        local ahead, behind = string.match(value, "^%+(%d+) %-(%d+)$")
        status.ahead, status.behind = tonumber(ahead), tonumber(behind)
      end
    elseif kind == "1" or kind == "2" then
      -- The old path of a rename is in the next entry.
      local fields = if kind == "1" then 8 else 9
      local staged, changed, path = string.match(entry, "^. (.)(.)" .. string.rep(" %S+", fields - 2) .. " (.*)$")
      local from = nil
      if kind == "2" then
        at += 1
        from = entries[at]
      end
      if WORDS[staged] then
        table.insert(status.staged, { path = path, change = WORDS[staged], from = from })
      end
      if WORDS[changed] then
        table.insert(status.changed, { path = path, change = WORDS[changed] })
      end
    elseif kind == "u" then
      table.insert(status.conflicts, (string.match(entry, "^u" .. string.rep(" %S+", 9) .. " (.*)$")))
    elseif kind == "?" then
      table.insert(status.untracked, string.sub(entry, 3))
    end
    at += 1
  end
  status.clean = #status.staged + #status.changed + #status.untracked + #status.conflicts == 0
  return status
end
