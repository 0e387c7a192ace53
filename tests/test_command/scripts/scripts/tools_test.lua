-- Tools called as a model calls them. Every test here passes.

local convert = tool.load("convert")

test("arguments by name, the result as JSON gives it back", function()
  expect(convert({ celsius = 100 })).equals({ fahrenheit = 212, note = json.null, steps = {} })
end)

test("arguments that the schema refuses", function()
  local raised = expect(function()
    convert({ degrees = 1 })
  end).fails({ kind = "invalid_arguments", message = "'degrees' was unexpected" })
  expect(raised.message).contains('"celsius" is a required property')
  expect(function()
    convert({ celsius = -300 })
  end).fails(".celsius: -300 is less than the minimum of -273.15")
  expect(function()
    convert()
  end).fails("required")
  expect(function()
    convert(21)
  end).fails("by name")
  expect(function()
    convert({ celsius = print })
  end).fails({ kind = "invalid_arguments" })
end)

test("a callback", function()
  local later = tool.load("later")
  expect(later({ number = 1 })).equals({ number = 2 })
  expect(function()
    later({ number = -1 })
  end).fails("without calling its callback")
end)

test("two calls side by side", function()
  local later, ended = tool.load("later"), 0
  for number = 1, 3 do
    task.spawn(function()
      expect(later({ number = number })).equals({ number = number + 1 })
      ended += 1
    end)
  end
  while ended < 3 do
    task.wait()
  end
  expect(ended).is(3)
end)

test("how a call fails", function()
  local misbehave = tool.load("misbehave")
  expect(function()
    misbehave({ how = "function" })
  end).fails({ kind = "unserialisable", message = ".called: function" })
  local raised = expect(function()
    misbehave({ how = "failure" })
  end).fails({ kind = "failure" })
  expect(raised.message).is("there is no such thing")
  raised = expect(function()
    misbehave({ how = "?" })
  end).fails({ kind = "script" })
  expect(raised.message).is("scripts/misbehave.lua:17: attempt to index nil with 'field'")
  expect(function()
    misbehave({ how = "spin" })
  end).fails({ kind = "timeout", message = "time limit of 300 ms" })
  expect(function()
    misbehave({ how = "forbidden" })
  end).fails({ kind = "permission", message = ":read" })
end)

test("what cannot be loaded", function()
  for name, part in { convertt = "did you mean `convert`?", done = "an exit tool" } do
    expect(function()
      tool.load(name)
    end).fails(part)
  end
  for part, options in
    {
      ["unknown option `htp`; there are: grants, root, "] = { htp = {} },
      ["a table of functions as `time`"] = { time = 1 },
      ["`time` has no `noww`; it has "] = { time = { noww = mock() } },
      ["unknown grant `reed`"] = { grants = { reed = {} } },
      ["a list of strings as the grant `read`"] = { grants = { read = "notes" } },
      ["as `root`"] = { root = 1 },
    }
  do
    expect(function()
      tool.load("convert", options)
    end).fails(part)
  end
end)

test("fakes stand in for host functions", function()
  local read = mock(function(path)
    task.wait(0.001)
    return "the text of " .. path
  end)
  local read_note = tool.load("read_note", { fs = { read = read }, time = { now = mock(5) } })
  expect(read_note({ path = "a" })).equals({ text = "the text of a", at = 5, day = "1970-01-01T00:00:00Z" })
  expect(read_note({ path = "b" }).text).is("the text of b")
  expect(read.calls).equals({ { "a" }, { "b" } })
  -- What is left out of a table that reaches the world is not real.
  expect(function()
    read_note({ path = "*" })
  end).fails("fs.list is not faked: the test gives `fs` without `list`")
end)

test("a fake raises as a host function does", function()
  local misbehave = tool.load("misbehave", {
    env = {
      get = function(name)
        error("env.get: there is no " .. name)
      end,
    },
    fs = {
      read = function()
        error(tool.failure("gone"))
      end,
    },
  })
  local raised = expect(function()
    misbehave({ how = "host" })
  end).fails()
  expect(raised.message).is("scripts/misbehave.lua:10: env.get: there is no EDITOR")
  expect(misbehave({ how = "swallow" })).equals({ caught = true })
end)

test("functions and tables go through fakes", function()
  local waited = {}
  local later = tool.load("later", {
    task = {
      delay = function(seconds, called)
        table.insert(waited, seconds)
        called()
      end,
    },
    log = {
      info = function(...)
        table.insert(waited, { ... })
      end,
    },
  })
  expect(later({ number = 7 })).equals({ number = 8 })
  expect(waited).equals({ 0.005, { "counted", 7 } })
end)

test("a tool that calls itself through its fake", function()
  local read_note
  read_note = tool.load("read_note", {
    fs = {
      read = function(path)
        return read_note({ path = path }).text
      end,
    },
  })
  expect(function()
    read_note({ path = "round" })
  end).fails("more than 32 calls of tools at a time")
end)

test("another root", function()
  temp.write("notes/today.md", "# Today")
  local read_note = tool.load("read_note", { root = temp_dir() })
  expect(read_note({ path = "notes/today.md" }).text).is("# Today")
  temp.write("secret.md", "x")
  expect(function()
    read_note({ path = "secret.md" })
  end).fails({ kind = "permission" })
end)

test("other grants", function()
  temp.write("today.md", "# Today")
  local here = tool.load("read_note", { grants = { read = { temp_dir() } } })
  expect(here({ path = temp_dir() .. "/today.md" }).text).is("# Today")
  local nowhere = tool.load("read_note", { grants = { read = {} }, root = temp_dir() })
  expect(function()
    nowhere({ path = "notes/today.md" })
  end).fails({ kind = "permission" })
end)
