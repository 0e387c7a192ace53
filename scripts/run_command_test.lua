test("arguments are passed unchanged", function()
  local run = mock({ code = 0, ok = true, stdout = "built\n", stderr = "", truncated = false })
  local run_command = tool.load("run_command", { process = { run = run } })
  expect(run_command({ command = { "make", "all; rm -rf /" }, input = "y\n" })).equals({
    code = 0,
    stdout = "built\n",
    stderr = "",
  })
  local call = run.calls[1]
  expect(call[1]).equals({ "make", "all; rm -rf /" })
  expect(call[2]).contains({ stdin = "y\n", timeout = 120 })
end)

test("the end of a long output is kept", function()
  local stdout = string.rep("compiling\n", 50000) .. "error: no\n"
  local run = mock({ code = 2, ok = false, stdout = stdout, stderr = "", truncated = false })
  local ended = tool.load("run_command", { process = { run = run } })({ command = { "make" } })
  expect(ended.code).is(2)
  expect(ended.cut).is(true)
  expect(#ended.stdout <= 25000).is(true)
  expect(ended.stdout).matches("^compiling\n.*error: no\n$")
end)

test("other programs are refused", function()
  local run_command = tool.load("run_command", { grants = { run = {} } })
  expect(function()
    run_command({ command = { "sh", "-c", "true" } })
  end).fails({ kind = "permission", message = "sh" })
end)
