-- Converts HTML to readable text without scripts, styles and tags. Not a complete parser.

local NAMED = {
  amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", nbsp = " ", ndash = "–", mdash = "—", hellip = "…",
  lsquo = "‘", rsquo = "’", ldquo = "“", rdquo = "”", laquo = "«", raquo = "»", copy = "©", reg = "®", deg = "°",
  times = "×", middot = "·", bull = "•", euro = "€", pound = "£", sect = "§", para = "¶", rarr = "→", larr = "←",
}

-- Elements that start on a new line, with the number of line ends before them.
local BLOCKS = {
  address = 1, article = 2, aside = 2, blockquote = 2, br = 1, dd = 1, div = 1, dl = 2, dt = 1, fieldset = 1, figure = 2,
  footer = 2, form = 2, h1 = 2, h2 = 2, h3 = 2, h4 = 2, h5 = 2, h6 = 2, header = 2, hr = 2, li = 1, main = 2, nav = 2,
  ol = 2, p = 2, pre = 2, section = 2, table = 2, td = 0, th = 0, tr = 1, ul = 2,
}

-- Elements whose contents are skipped.
local SILENT = { script = true, style = true, noscript = true, template = true, svg = true, head = true }

local function entity(name)
  local decimal, hex = string.match(name, "^#(%d+)$"), string.match(name, "^#[xX](%x+)$")
  local code = tonumber(decimal or "") or tonumber(hex or "", 16)
  if code then
    local is_character = code > 0 and code <= 0x10FFFF and (code < 0xD800 or code > 0xDFFF)
    return if is_character then utf8.char(code) else "\u{FFFD}"
  end
  return NAMED[name]
end

local function unescape(text)
  return (string.gsub(text, "&(#?%w+);?", entity))
end

-- Collapses whitespace to single spaces.
local function squeeze(text)
  return (string.gsub(text, "%s+", " "))
end

local function text_of(html)
  local pieces, at = {}, 1
  -- The number of line ends before the next text: the maximum of the adjacent blocks.
  local breaks, is_after_blank = 0, true
  local function add(raw)
    local piece = squeeze(raw)
    if breaks > 0 or is_after_blank then
      piece = string.gsub(piece, "^ ", "")
    end
    if piece == "" then
      return
    end
    if breaks > 0 and #pieces > 0 then
      table.insert(pieces, string.rep("\n", breaks))
    end
    breaks, is_after_blank = 0, string.sub(piece, -1) == " "
    table.insert(pieces, unescape(piece))
  end
  while true do
    local open = string.find(html, "<", at, true)
    if not open then
      add(string.sub(html, at))
      break
    end
    if open > at then
      add(string.sub(html, at, open - 1))
    end
    if string.sub(html, open, open + 3) == "<!--" then
      local _, last = string.find(html, "-->", open + 4, true)
      at = (last or #html) + 1
    else
      local close = string.find(html, ">", open, true) or #html
      local slash, name = string.match(html, "^<(/?)(%w+)", open)
      name = string.lower(name or "")
      at = close + 1
      if SILENT[name] and slash == "" and string.sub(html, close - 1, close - 1) ~= "/" then
        -- Skip to the closing tag, or to the end if there is none.
        local rest = at
        repeat
          local from, to = string.find(html, "</", rest, true)
          rest = if to then to + 1 else #html + 1
          local is_end = from and string.lower(string.sub(html, rest, rest + #name - 1)) == name
        until not from or is_end
        at = (string.find(html, ">", rest, true) or #html) + 1
      elseif BLOCKS[name] then
        breaks = math.max(breaks, BLOCKS[name])
        if BLOCKS[name] == 0 then
          add(" ")
        elseif name == "li" and slash == "" then
          add("- ")
        end
      end
    end
    if at > #html then
      break
    end
  end
  local text = string.gsub(table.concat(pieces), " +\n", "\n")
  local last = string.find(string.reverse(text), "%S")
  return if last then string.sub(text, 1, -last) else ""
end

local function title_of(html)
  local title = string.match(string.sub(html, 1, 20000), "<[tT][iI][tT][lL][eE][^>]*>([^<]*)")
  return if title then string.match(unescape(squeeze(title)), "^ ?(.-) ?$") else nil
end

return { text = text_of, title = title_of }
