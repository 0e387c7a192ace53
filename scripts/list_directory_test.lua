local function list_directory(arguments)
  return tool.load("list_directory", { root = temp_dir() })(arguments)
end

test("entries by name, files with their sizes", function()
  temp.write("b.txt", "four")
  temp.write("a/x", "")
  expect(list_directory({})).equals({
    entries = { { name = "a", kind = "directory" }, { name = "b.txt", kind = "file", size = 4 } },
  })
  expect(list_directory({ path = "a" }).entries).equals({ { name = "x", kind = "file", size = 0 } })
end)

test("an empty folder is an empty list", function()
  expect(list_directory({}).entries).equals(json.array {})
end)

test("what is no folder is told", function()
  temp.write("b.txt", "four")
  expect(function()
    list_directory({ path = "b.txt" })
  end).fails({ kind = "failure", message = "b.txt is a file, not a folder" })
  expect(function()
    list_directory({ path = "gone" })
  end).fails({ kind = "failure", message = "there is no gone" })
end)
