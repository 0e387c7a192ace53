local function write_file(arguments)
  return tool.load("write_file", { root = temp_dir() })(arguments)
end

test("a new file, folders included", function()
  expect(write_file({ path = "notes/today.md", text = "# Today\n" })).equals({
    path = "notes/today.md",
    bytes = 8,
    created = true,
  })
  expect(temp.read("notes/today.md")).is("# Today\n")
end)

test("what is there is replaced", function()
  temp.write("a.txt", "a long old text")
  expect(write_file({ path = "a.txt", text = "new" }).created).is(false)
  expect(temp.read("a.txt")).is("new")
end)

test("folders and places outside are refused", function()
  temp.write("folder/x", "")
  expect(function()
    write_file({ path = "folder", text = "" })
  end).fails({ kind = "failure", message = "is a folder" })
  expect(function()
    write_file({ path = "../x", text = "" })
  end).fails({ kind = "permission" })
end)
