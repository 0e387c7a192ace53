local function read_file(arguments)
  return tool.load("read_file", { root = temp_dir() })(arguments)
end

local function refusal(arguments)
  return expect(function()
    read_file(arguments)
  end).fails({ kind = "failure" }).message
end

test("lines are prefixed with their numbers", function()
  temp.write("a.txt", "one\ntwo\r\nthree")
  expect(read_file({ path = "a.txt" })).equals({ text = "     1\tone\n     2\ttwo\n     3\tthree", last_line = 3, more = false })
end)

test("a long file is returned in pages", function()
  local lines = {}
  for number = 1, 2500 do
    table.insert(lines, `line {number}`)
  end
  temp.write("long.txt", table.concat(lines, "\n"))
  local first = read_file({ path = "long.txt" })
  expect(first.last_line).is(1000)
  expect(first.more).is(true)
  local last = read_file({ path = "long.txt", first_line = 2400, line_count = 1000 })
  expect(last.last_line).is(2500)
  expect(last.more).is(false)
  expect(last.text).contains("  2400\tline 2400\n")
  expect(read_file({ path = "long.txt", first_line = 2501 }).note).is("the file has fewer than 2501 lines")
end)

test("a page of long lines ends before it is longer than a model gets", function()
  temp.write("wide.txt", string.rep(string.rep("x", 500) .. "\n", 300))
  local first = read_file({ path = "wide.txt" })
  expect(#first.text <= 50000).is(true)
  expect(first.last_line).is(98)
  expect(first.more).is(true)
  expect(read_file({ path = "wide.txt", first_line = 99 }).text).matches("^    99\tx")
end)

test("a long line is truncated between characters", function()
  temp.write("min.js", string.rep("é", 5000))
  local text = read_file({ path = "min.js" }).text
  expect(utf8.len(text)).never.is_nil()
  expect(text).contains("… (8000 bytes more)")
end)

test("a path that is not a text file is an error", function()
  temp.write("folder/a", "")
  expect(read_file({ path = "folder/a" })).equals({ text = "", note = "the file is empty" })
  expect(refusal({ path = "folder" })).contains("is a folder; use list_directory")
  expect(refusal({ path = "gone" })).contains("gone does not exist")
  temp.write("latin1", "caf\xE9")
  expect(refusal({ path = "latin1" })).contains("UTF-8")
end)

test("files outside of the project are refused", function()
  expect(function()
    read_file({ path = "../secret" })
  end).fails({ kind = "permission" })
  expect(function()
    read_file({ path = "/etc/passwd" })
  end).fails({ kind = "permission" })
end)
