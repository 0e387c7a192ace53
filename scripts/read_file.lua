local attempt = require("./lib/attempt")
local files = require("./lib/files")

local LINES = 1000
-- Maximum length of the text in bytes: a model gets 64 KiB of a result.
local MOST = 50000
-- Maximum length of a line in bytes. Minified files have lines of megabytes.
local LONGEST = 2000

local function cut(line)
  if #line <= LONGEST then
    return line
  end
  local last = LONGEST
  -- Do not split a character.
  while bit32.band(string.byte(line, last + 1), 0xC0) == 0x80 do
    last -= 1
  end
  return `{string.sub(line, 1, last)}… ({#line - last} bytes more)`
end

return function(path, first_line, line_count)
  files.expect_file(path)
  local first = first_line or 1
  local lines, more = attempt(fs.lines, path, { from = first, count = line_count or LINES })
  if #lines == 0 then
    return { text = "", note = if first == 1 then "the file is empty" else `the file has fewer than {first} lines` }
  end
  local numbered, size = table.create(#lines), 0
  for index, line in lines do
    local shown = string.format("%6d\t%s", first + index - 1, cut(line))
    size += #shown + 1
    if size > MOST then
      more = true
      break
    end
    numbered[index] = shown
  end
  return { text = table.concat(numbered, "\n"), last_line = first + #numbered - 1, more = more }
end
