local function write_file(arguments)
  return tool.load("write_file", { root = temp_dir() })(arguments)
end

test("a new file and its folders are created", function()
  expect(write_file({ path = "notes/today.md", text = "# Today\n" })).equals({
    path = "notes/today.md",
    bytes = 8,
    created = true,
  })
  expect(temp.read("notes/today.md")).is("# Today\n")
end)

test("an existing file is replaced", function()
  temp.write("a.txt", "a long old text")
  expect(write_file({ path = "a.txt", text = "new" }).created).is(false)
  expect(temp.read("a.txt")).is("new")
end)

test("files that control tools and git are refused", function()
  for _, path in { ".git/hooks/pre-commit", "specs/a.eld", "./scripts//a.lua", "Specs/a.eld", "vendor/x/.GIT/config" } do
    expect(function()
      write_file({ path = path, text = "" })
    end).fails({ kind = "failure", message = "must not be changed" })
  end
  expect(write_file({ path = "src/scripts/a.lua", text = "" }).created).is(true)
end)

test("folders and paths outside of the project are refused", function()
  temp.write("folder/x", "")
  expect(function()
    write_file({ path = "folder", text = "" })
  end).fails({ kind = "failure", message = "is a folder" })
  for _, path in { "../x", "a/../../x", "/etc/x" } do
    expect(function()
      write_file({ path = path, text = "" })
    end).fails({ kind = "failure" })
  end
end)
