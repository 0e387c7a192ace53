-- All tests fail, each in a different way.

test("a difference with its path", function()
  print("asked", 1)
  log.debug("and\27[31m thought")
  expect({ list = { 1, { name = "a" } }, ["two words"] = true }).equals({ list = { 1, { name = "b" } }, more = json.null })
end)

test("texts line by line", function()
  expect("one\ntwo\nthree\n").equals("one\nTWO\nthree\n")
end)

test("never", function()
  expect({ 1 }).never.equals({ 1 })
end)

test("another kind of error", function()
  expect(function()
    error("plain")
  end).fails({ kind = "failure" })
end)

test("no error", function()
  expect(function()
    return 3
  end).fails("x")
end)

test("an expectation without a matcher", function()
  expect(1 == 2)
end)

test("an error", function()
  local function inner()
    local nothing = nil
    return nothing.field
  end
  inner()
end)

test("a failure that a tool catches", function()
  local misbehave = tool.load("misbehave", {
    fs = {
      read = function(path)
        expect(path).is("something")
      end,
    },
  })
  expect(misbehave({ how = "swallow" })).equals({ caught = true })
end)

test("a tool that fails", function()
  tool.load("misbehave")({ how = "?" })
end)

test("spins", function()
  while true do
  end
end)

test("waits forever", function()
  task.wait(1000)
end)

test("uses all memory", function()
  return #string.rep("x", 1e8)
end)

test("catches everything", function()
  while true do
    pcall(function()
      while true do
      end
    end)
  end
end)

test("a tool called while it spins", function()
  local misbehave = tool.load("misbehave")
  while true do pcall(misbehave, { how = "spin" }) end
end)

test("never", function() end)
