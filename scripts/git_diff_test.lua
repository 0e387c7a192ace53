local function diff(arguments, output, truncated)
  local run = mock(function(argv)
    local stdout = if table.find(argv, "diff") then output or "diff\n" else ""
    return { code = 0, ok = true, stdout = stdout, stderr = "", truncated = truncated or false }
  end)
  local result = tool.load("git_diff", { process = { run = run }, fs = { exists = mock(true) } })(arguments)
  -- The first call lists the filters.
  local argv = run.calls[2][1]
  local at = table.find(argv, "diff")
  return result, table.concat(argv, " ", at)
end

test("arguments are passed to git", function()
  local cases = {
    { {}, "diff --no-ext-diff --no-textconv --ignore-submodules=all --" },
    { { staged = true }, "diff --no-ext-diff --no-textconv --ignore-submodules=all --cached --" },
    { { since = "HEAD~3", path = "src" }, "diff --no-ext-diff --no-textconv --ignore-submodules=all HEAD~3 -- src" },
  }
  for _, case in cases do
    local _, argv = diff(case[1])
    expect(argv).is(case[2])
  end
end)

test("a long diff is truncated at a line end", function()
  local result = diff({}, string.rep("+ a line of a diff\n", 10000))
  expect(#result.diff <= 50000).is(true)
  expect(result.diff).matches("\n$")
  expect(result.more).is(true)
end)

test("a missing path is an error", function()
  local run = mock({ code = 0, ok = true, stdout = "", stderr = "", truncated = false })
  local git_diff = tool.load("git_diff", { process = { run = run }, fs = { exists = mock(false) } })
  expect(function()
    git_diff({ path = "gone" })
  end).fails({ kind = "failure", message = "gone does not exist" })
end)

test("a diff without changes has a note", function()
  expect((diff({}, ""))).equals({ diff = "", note = "no changes" })
end)
