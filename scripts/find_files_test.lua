local function find_files(arguments)
  return tool.load("find_files", { root = temp_dir() })(arguments)
end

local function make()
  for _, name in { "src/main.c", "src/util/list.c", "src/util/list.h", "docs/list.md", "build/out.c", ".hidden/x.c" } do
    temp.write(name, "x")
  end
  temp.write(".gitignore", "/build/\n")
end

test("patterns, folders and names", function()
  make()
  expect(find_files({ pattern = "**/*.c" }).paths).equals({ "src/main.c", "src/util/list.c" })
  expect(find_files({ pattern = "*.c" }).paths).equals({ "src/main.c", "src/util/list.c" })
  expect(find_files({ pattern = "list.*" }).paths).equals({ "docs/list.md", "src/util/list.c", "src/util/list.h" })
  expect(find_files({ pattern = "src/*.{c,h}" }).paths).equals({ "src/main.c" })
  expect(find_files({ pattern = "*.h", path = "src" }).paths).equals({ "src/util/list.h" })
end)

test("no match returns an empty list", function()
  make()
  expect(find_files({ pattern = "*.zig" })).equals({ paths = json.array {} })
end)

test("more paths than the limit set `more`", function()
  for number = 1, 510 do
    temp.write(`many/{number}.txt`, "")
  end
  local found = find_files({ pattern = "**/*.txt" })
  expect(#found.paths).is(500)
  expect(found.more).is(true)
end)

test("an invalid pattern is an error", function()
  expect(function()
    find_files({ pattern = "/etc/*" })
  end).fails({ kind = "failure", message = "must not start with a slash" })
  expect(function()
    find_files({ pattern = "[" })
  end).fails()
end)
