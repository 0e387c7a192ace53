local function status_of(output)
  local run = mock(function(argv)
    local stdout = if table.find(argv, "status") then output else ""
    return { code = 0, ok = true, stdout = stdout, stderr = "", truncated = false }
  end)
  return tool.load("git_status", { process = { run = run } })({})
end

test("the output of git is sorted into lists", function()
  local zeros = string.rep("0", 40)
  local entry = `N... 100644 100644 100644 {zeros} {zeros}`
  local output = table.concat({
    "# branch.oid " .. zeros,
    "# branch.head main",
    "# branch.upstream origin/main",
    "# branch.ab +2 -1",
    `1 M. {entry} src/staged.c`,
    `1 .D {entry} gone away.c`,
    `1 AM {entry} both.c`,
    `2 R. {entry} R100 new.c`,
    "old.c",
    `u UU N... 100644 100644 100644 100644 {zeros} {zeros} {zeros} conflict.c`,
    "? new file.txt",
    "",
  }, "\0")
  expect(status_of(output)).equals({
    branch = "main",
    upstream = "origin/main",
    ahead = 2,
    behind = 1,
    staged = {
      { path = "src/staged.c", change = "modified" },
      { path = "both.c", change = "added" },
      { path = "new.c", change = "renamed", from = "old.c" },
    },
    changed = { { path = "gone away.c", change = "deleted" }, { path = "both.c", change = "modified" } },
    untracked = { "new file.txt" },
    conflicts = { "conflict.c" },
    clean = false,
  })
end)

test("a clean repository", function()
  expect(status_of("# branch.oid (initial)\0# branch.head main\0")).equals({
    branch = "main",
    staged = json.array {},
    changed = json.array {},
    untracked = json.array {},
    conflicts = json.array {},
    clean = true,
  })
end)

test("a missing repository is an error", function()
  local run = mock({ code = 128, ok = false, stdout = "", stderr = "fatal: not a git repository (or any …)\n" })
  expect(function()
    tool.load("git_status", { process = { run = run } })({})
  end).fails({ kind = "failure", message = "the project is not in a git repository" })
end)

test("the filters of a repository are disabled", function()
  local run = mock(function(argv)
    local stdout = if table.find(argv, "config") then "filter.a.b.clean\0filter.a.b.required\0" else ""
    return { code = 0, ok = true, stdout = stdout, stderr = "", truncated = false }
  end)
  tool.load("git_status", { process = { run = run } })({})
  local argv = table.concat(run.calls[2][1], " ")
  expect(argv).contains("-c filter.a.b.clean= -c filter.a.b.smudge= -c filter.a.b.process= -c filter.a.b.required=false status")
end)
