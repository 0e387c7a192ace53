local attempt = require("./lib/attempt")
local files = require("./lib/files")

-- Returns the numbers of the lines where `passage` starts in `text`, at most `most`, and the number of occurrences.
local function occurrences(text, passage, most)
  local lines, count, line, at, counted = {}, 0, 1, 1, 1
  while true do
    local first, last = string.find(text, passage, at, true)
    if not first then
      return lines, count
    end
    count += 1
    if count <= most then
      local newline = string.find(text, "\n", counted, true)
      while newline and newline < first do
        line += 1
        newline = string.find(text, "\n", newline + 1, true)
      end
      counted = first
      table.insert(lines, line)
    end
    at = last + 1
  end
end

local function squeeze(text)
  return (string.match(string.gsub(text, "%s+", " "), "^ ?(.-) ?$"))
end

-- Returns the likely reason why `passage` is not in `text`.
local function explain(path, text, passage)
  if string.find(text, "\r\n", 1, true) and not string.find(passage, "\r\n", 1, true) and string.find(passage, "\n", 1, true) then
    local _, count = occurrences(text, (string.gsub(passage, "\n", "\r\n")), 1)
    if count > 0 then
      return `the lines of {path} end with \\r\\n; use the same line ends in old_text and new_text`
    end
  end
  if string.find(passage, "^ *%d+\t") then
    return "old_text starts with a line number, which is not part of the file"
  end
  if #text <= 1000000 and string.find(squeeze(text), squeeze(passage), 1, true) then
    return `old_text occurs in {path} with different whitespace; copy it exactly as read_file shows it`
  end
  local first = string.match(passage, "^%s*([^\r\n]-)%s*[\r\n]")
  if first and first ~= "" and string.find(text, first, 1, true) then
    local lines = occurrences(text, first, 1)
    return `only the first line of old_text occurs in {path}, at line {lines[1]}; the following lines are different`
  end
  return `old_text does not occur in {path}; read the file again`
end

return function(path, old_text, new_text, replace_all)
  files.expect_writable(path)
  local text = files.read_text(path)
  if old_text == new_text then
    error(tool.failure("old_text and new_text are the same"))
  end
  local lines, count = occurrences(text, old_text, 10)
  if count == 0 then
    error(tool.failure(explain(path, text, old_text)))
  end
  if count > 1 and not replace_all then
    local more = if count > #lines then " and more" else ""
    error(tool.failure(
      `old_text occurs {count} times in {path}, at lines {table.concat(lines, ", ")}{more}; `
        .. "include more of the surrounding lines, or set replace_all"
    ))
  end
  local pieces, at = {}, 1
  while true do
    local first, last = string.find(text, old_text, at, true)
    if not first then
      table.insert(pieces, string.sub(text, at))
      break
    end
    table.insert(pieces, string.sub(text, at, first - 1))
    table.insert(pieces, new_text)
    at = last + 1
  end
  attempt(fs.write, path, table.concat(pieces))
  return { path = path, replaced = count, first_line = lines[1] }
end
