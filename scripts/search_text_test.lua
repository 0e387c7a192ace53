local function search_text(arguments)
  return tool.load("search_text", { root = temp_dir() })(arguments)
end

local function make()
  temp.write("src/a.rs", "fn main() {\n    // TODO: more\r\n    todo!()\n}\n")
  temp.write("src/b.txt", "nothing\nto do\n")
  temp.write("target/a.rs", "TODO in build output\n")
  temp.write("image.png", "\x89PNG\0TODO")
  temp.write(".gitignore", "target\n")
end

test("matches have path, line and text", function()
  make()
  expect(search_text({ pattern = "TODO" })).equals({
    matches = { { path = "src/a.rs", line = 2, text = "    // TODO: more" } },
    files_searched = 2,
  })
end)

test("case, literal text, globs and anchors", function()
  make()
  local function places(arguments)
    local found = {}
    for _, match in search_text(arguments).matches do
      table.insert(found, `{match.path}:{match.line}`)
    end
    return table.concat(found, " ")
  end
  expect(places({ pattern = "todo", ignore_case = true })).is("src/a.rs:2 src/a.rs:3")
  expect(places({ pattern = "todo!()", literal = true })).is("src/a.rs:3")
  expect(places({ pattern = "to ?do", files = "**/*.txt" })).is("src/b.txt:2")
  expect(places({ pattern = "^to" })).is("src/b.txt:2")
  expect(places({ pattern = "more$" })).is("src/a.rs:2")
  expect(places({ pattern = "\\bfn\\b" })).is("src/a.rs:1")
  expect(places({ pattern = "o", path = "src/b.txt" })).is("src/b.txt:1 src/b.txt:2")
end)

test("context shows the surrounding lines", function()
  make()
  local match = search_text({ pattern = "TODO", context = 1 }).matches[1]
  expect(match.context).is("1-fn main() {\n2:    // TODO: more\n3-    todo!()")
end)

test("matches with a long context end before they are longer than a model gets", function()
  temp.write("wide.txt", string.rep(string.rep("x", 390) .. "\n", 150))
  local found = search_text({ pattern = "x", path = "wide.txt", context = 10 })
  expect(#json.encode(found) < 65536).is(true)
  expect(found.more).is(true)
end)

test("more matches than the limit set `more`", function()
  temp.write("many.txt", string.rep("x\n", 300))
  local found = search_text({ pattern = "x" })
  expect(#found.matches).is(200)
  expect(found.more).is(true)
end)

test("an invalid pattern is an error", function()
  expect(function()
    search_text({ pattern = "(" })
  end).fails({ kind = "failure", message = "unclosed group" })
  expect(function()
    search_text({ pattern = "a", path = "gone" })
  end).fails({ kind = "failure", message = "gone does not exist" })
end)
