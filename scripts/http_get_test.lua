local function get(body, headers, arguments)
  local answer = { status = 200, ok = true, url = "https://example.org/", headers = headers or {}, body = body }
  local fake = { http = { get = mock(answer) } }
  local request = { url = "https://example.org/" }
  for key, value in arguments or {} do
    request[key] = value
  end
  return tool.load("http_get", fake)(request)
end

local HTML = { ["content-type"] = "text/html; charset=utf-8" }

test("a page is converted to text", function()
  local page = [[<!doctype html><html><head><title>The &amp; page</title><style>p { color: red }</style></head>
    <body><!-- not <b>shown</b> --><h1>Hello</h1><script>alert("</p>")</script>
    <p>One&nbsp;&lt;two&gt; &#x27;three&#39;</p><ul><li>a</li><li>b<br>c</li></ul></body></html>]]
  expect(get(page, HTML)).equals({
    url = "https://example.org/",
    status = 200,
    title = "The & page",
    text = "Hello\n\nOne <two> 'three'\n\n- a\n- b\nc",
  })
end)

test("malformed pages terminate", function()
  for _, page in { "<", "<p", "<script>", "<!--", "a < b", "</", "<script><", "&#xFFFFFFFF;&#55296;&nope;" } do
    expect(type(get(page, HTML).text)).is("string")
  end
end)

test("other text is returned unchanged, in parts", function()
  local text = string.rep("ä", 30000)
  local first = get(text, { ["content-type"] = "text/plain" })
  expect(utf8.len(first.text)).is(20000)
  expect(first.more).is(true)
  local second = get(text, { ["content-type"] = "text/plain" }, { first_character = 20001 })
  expect(utf8.len(second.text)).is(10000)
  expect(second.more).is_nil()
  expect(get("short", {}, { first_character = 10 }).text).is("")
end)

test("a body that is not text is an error", function()
  for type, expected in { ["image/png"] = "image/png", ["text/plain"] = "not UTF-8 text" } do
    expect(function()
      get("\x89PNG", { ["content-type"] = type })
    end).fails({ kind = "failure", message = expected })
  end
end)

test("other hosts are refused", function()
  expect(function()
    tool.load("http_get", { grants = { net = {} } })({ url = "https://example.com/" })
  end).fails({ kind = "permission", message = "example.com" })
end)
