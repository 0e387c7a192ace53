local function edit_file(arguments)
  return tool.load("edit_file", { root = temp_dir() })(arguments)
end

local function edit(old, new, all)
  return edit_file({ path = "a.c", old_text = old, new_text = new, replace_all = all })
end

local function refusal(old, new)
  return expect(function()
    edit(old, new or "y")
  end).fails({ kind = "failure" }).message
end

test("one occurrence is replaced exactly", function()
  temp.write("a.c", "int a;\nint b;\n")
  expect(edit("int b;", "long b[%d+] = $1;")).equals({ path = "a.c", replaced = 1, first_line = 2 })
  expect(temp.read("a.c")).is("int a;\nlong b[%d+] = $1;\n")
  edit("int a;\n", "")
  expect(temp.read("a.c")).is("long b[%d+] = $1;\n")
end)

test("several occurrences require replace_all", function()
  temp.write("a.c", "x = 1\ny = 2\nx = 1\n")
  local message = refusal("x = 1")
  expect(message).contains("2 times in a.c, at lines 1, 3")
  expect(message).contains("replace_all")
  expect(temp.read("a.c")).is("x = 1\ny = 2\nx = 1\n")
  expect(edit("x = 1", "x = 0", true).replaced).is(2)
  expect(temp.read("a.c")).is("x = 0\ny = 2\nx = 0\n")
end)

test("text that does not match changes nothing and is explained", function()
  temp.write("a.c", "if (a) {\n\treturn 1;\n}\n")
  expect(refusal("if (a) {\n  return 1;\n}")).contains("with different whitespace")
  expect(refusal("     2\treturn 1;")).contains("line number")
  expect(refusal("if (a) {\n\treturn 2;")).contains("only the first line of old_text occurs in a.c, at line 1")
  expect(refusal("while")).contains("does not occur in a.c; read the file again")
  expect(refusal("return 1;", "return 1;")).contains("the same")
  temp.write("a.c", "one\r\ntwo\r\n")
  expect(refusal("one\ntwo")).contains("\\r\\n")
end)

test("a missing file is an error", function()
  expect(refusal("x")).contains("a.c does not exist")
end)
