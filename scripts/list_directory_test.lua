local function list_directory(arguments)
  return tool.load("list_directory", { root = temp_dir() })(arguments)
end

test("entries are sorted by name, files have sizes", function()
  temp.write("b.txt", "four")
  temp.write("a/x", "")
  expect(list_directory({})).equals({
    entries = { { name = "a", kind = "directory" }, { name = "b.txt", kind = "file", size = 4 } },
  })
  expect(list_directory({ path = "a" }).entries).equals({ { name = "x", kind = "file", size = 0 } })
end)

test("an empty folder returns an empty list", function()
  expect(list_directory({}).entries).equals(json.array {})
end)

test("a path that is not a folder is an error", function()
  temp.write("b.txt", "four")
  expect(function()
    list_directory({ path = "b.txt" })
  end).fails({ kind = "failure", message = "b.txt is a file, not a folder" })
  expect(function()
    list_directory({ path = "gone" })
  end).fails({ kind = "failure", message = "gone does not exist" })
end)
