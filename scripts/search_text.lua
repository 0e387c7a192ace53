local attempt = require("./lib/attempt")
local shared = require("./lib/files")

local MOST_MATCHES = 200
local MOST_FILES = 20000
-- Maximum length of all matches in bytes: a model gets 64 KiB of a result.
local MOST_BYTES = 50000
-- Longer files are skipped and longer lines are truncated: they are rarely written by people.
local LONGEST_FILE = 2000000
local LONGEST_LINE = 400

-- Returns the files to search for `path`.
local function candidates(path, files)
  if shared.look(path).kind ~= "directory" then
    if shared.expect_file(path).size > LONGEST_FILE then
      error(tool.failure(`{path} is too long to search; use read_file`))
    end
    return { path }, false
  end
  return attempt(fs.glob, files or "**/*", { root = path, gitignore = true, limit = MOST_FILES })
end

-- Returns the text of a file, or nil if it should not be searched.
local function readable(path)
  local about = fs.stat(path)
  if not about or about.size == 0 or about.size > LONGEST_FILE then
    return nil
  end
  local known, body = pcall(fs.read, path)
  if not known or string.find(body, "\0", 1, true) then
    return nil
  end
  return body
end

return function(pattern, path, files, literal, ignore_case, context)
  if literal then
    pattern = text.escape(pattern)
  end
  if ignore_case then
    pattern = `(?i)(?:{pattern})`
  end
  attempt(text.matches, "", pattern)
  -- Most files have no match, so the whole text is searched first. A pattern that matches a line also matches the text,
  -- unless it contains \A or \z.
  local whole = if string.find(pattern, "\\[Az]") then nil else `(?mR){pattern}`
  local around = context or 0
  local paths, is_cut = candidates(path or ".", files)
  local matches, searched = json.array {}, 0
  local size, is_full = 0, false

  local function search(name, body)
    local lines = text.lines(body)
    for number, line in lines do
      if text.matches(line, pattern) then
        if #matches == MOST_MATCHES or size > MOST_BYTES then
          is_full, is_cut = true, true
          return
        end
        local match = { path = name, line = number, text = text.truncate(line, LONGEST_LINE) }
        if around > 0 then
          local shown = {}
          for at = math.max(1, number - around), math.min(#lines, number + around) do
            local mark = if at == number then ":" else "-"
            table.insert(shown, `{at}{mark}{text.truncate(lines[at], LONGEST_LINE)}`)
          end
          match.context = table.concat(shown, "\n")
        end
        size += #name + #match.text + #(match.context or "")
        table.insert(matches, match)
      end
    end
  end

  for index, name in paths do
    local body = readable(name)
    if body then
      searched += 1
      if not whole or text.matches(body, whole) then
        search(name, body)
      end
    end
    if is_full then
      break
    end
    if index % 500 == 0 then
      tool.progress(index / #paths, `{searched} files searched`)
    end
  end
  return { matches = matches, files_searched = searched, more = is_cut or nil }
end
