local function describe(name, answer)
  local run = mock(answer)
  local describe_function = tool.load("describe_function", { process = { run = run }, env = {} })
  return describe_function({ name = name }), run.calls[1][1]
end

test("passes the name as a string", function()
  local text, argv = describe('a"b', { ok = true, stdout = [["\"Add numbers.\""]] .. "\n" })
  expect(text).is("Add numbers.")
  expect(argv[3]).contains([[(intern "a\"b")]])
end)

test("reports an error of Emacs", function()
  expect(function()
    describe("nope", { ok = false, stderr = "*ERROR*: void-function nope" })
  end).fails({ kind = "failure", message = "void-function" })
end)
