local attempt = require("./lib/attempt")
local html = require("./lib/html")

-- Maximum number of characters to return.
local MOST = 20000

return function(url, first_character)
  local response = attempt(http.get, url, { headers = { accept = "text/html, text/*, application/json, */*;q=0.1" } })
  local kind = string.lower(string.match(response.headers["content-type"] or "", "^[^;%s]*"))
  local body = response.body
  local title
  if kind == "text/html" or kind == "application/xhtml+xml" then
    title, body = html.title(body), html.text(body)
  elseif not (string.find(kind, "^text/") or string.find(kind, "json") or string.find(kind, "xml") or kind == "") then
    error(tool.failure(`{url} is not text: it has the type {kind} and {#body} bytes`))
  end
  local length = utf8.len(body)
  if not length then
    error(tool.failure(`{url} is not UTF-8 text`))
  end
  local first = first_character or 1
  local from = if first > length then #body + 1 else utf8.offset(body, first) or #body + 1
  local to = if first + MOST > length then #body else (utf8.offset(body, first + MOST) or #body + 1) - 1
  return {
    url = response.url,
    status = response.status,
    title = title,
    text = string.sub(body, from, to),
    more = if first + MOST <= length then true else nil,
  }
end
