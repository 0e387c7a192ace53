local attempt = require("./lib/attempt")
local files = require("./lib/files")

local LINES = 1000
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
  local numbered = table.create(#lines)
  for index, line in lines do
    numbered[index] = string.format("%6d\t%s", first + index - 1, cut(line))
  end
  return { text = table.concat(numbered, "\n"), last_line = first + #lines - 1, more = more }
end
