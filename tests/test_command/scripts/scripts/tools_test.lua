-- Calls of tools as a model makes them. All tests pass.

local convert = tool.load("convert")

test("arguments are passed by name and the result is converted to JSON and back", function()
  expect(convert({ celsius = 100 })).equals({ fahrenheit = 212, note = json.null, steps = {} })
end)

test("invalid arguments are rejected", function()
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

test("an asynchronous tool returns the result of its callback", function()
  local later = tool.load("later")
  expect(later({ number = 1 })).equals({ number = 2 })
  expect(function()
    later({ number = -1 })
  end).fails("without calling its callback")
end)

test("calls can run concurrently", function()
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

test("failures of calls have kinds", function()
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

test("invalid arguments of tool.load are errors", function()
  for name, part in { convertt = "did you mean `convert`?", done = "an exit tool" } do
    expect(function()
      tool.load(name)
    end).fails(part)
  end
  for part, options in
    {
      ["unknown option `htp`, expected one of grants, root, "] = { htp = {} },
      ["a table of functions for `time`"] = { time = 1 },
      ["unknown field `noww` of `time`, expected one of "] = { time = { noww = mock() } },
      ["unknown grant `reed`"] = { grants = { reed = {} } },
      ["a list of strings for the grant `read`"] = { grants = { read = "notes" } },
      ["for `root`"] = { root = 1 },
    }
  do
    expect(function()
      tool.load("convert", options)
    end).fails(part)
  end
end)

test("fakes replace host functions", function()
  local read = mock(function(path)
    task.wait(0.001)
    return "the text of " .. path
  end)
  local read_note = tool.load("read_note", { fs = { read = read }, time = { now = mock(5) } })
  expect(read_note({ path = "a" })).equals({ text = "the text of a", at = 5, day = "1970-01-01T00:00:00Z" })
  expect(read_note({ path = "b" }).text).is("the text of b")
  expect(read.calls).equals({ { "a" }, { "b" } })
  -- Other functions of a faked table with external access fail.
  expect(function()
    read_note({ path = "*" })
  end).fails("fs.list is not faked: the test fakes `fs` without `list`")
end)

test("a fake raises errors like a host function", function()
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

test("functions and tables are passed to fakes", function()
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
  end).fails("more than 32 tool calls at the same time")
end)

test("a tool can run with a different root", function()
  temp.write("notes/today.md", "# Today")
  local read_note = tool.load("read_note", { root = temp_dir() })
  expect(read_note({ path = "notes/today.md" }).text).is("# Today")
  temp.write("secret.md", "x")
  expect(function()
    read_note({ path = "secret.md" })
  end).fails({ kind = "permission" })
end)

test("a tool can run with different grants", function()
  temp.write("today.md", "# Today")
  local here = tool.load("read_note", { grants = { read = { temp_dir() } } })
  expect(here({ path = temp_dir() .. "/today.md" }).text).is("# Today")
  local nowhere = tool.load("read_note", { grants = { read = {} }, root = temp_dir() })
  expect(function()
    nowhere({ path = "notes/today.md" })
  end).fails({ kind = "permission" })
end)

test("grants beyond the spec are limited to the folder of the test", function()
  local function load(options)
    return function()
      tool.load("read_note", options)
    end
  end
  expect(load({ grants = { read = { "notes/deep" }, env = { "EDITOR" } } })).never.fails()
  for _, grants in
    {
      { read = { "/" } },
      { read = { temp_dir() .. "/../" } },
      { read = { "notes/../specs" } },
      { write = { "notes" } },
      { run = { "sh" } },
      { net = { "example.org" } },
      { env = { "PATH" } },
    }
  do
    expect(load({ grants = grants })).fails("cannot grant")
  end
  for _, root in { "/", "..", temp_dir() .. "/..", temp_dir() .. "x" } do
    expect(load({ root = root })).fails("`root` must be temp_dir() or a folder in it")
  end
  expect(load({ grants = { write = { temp_dir() .. "/out" } }, root = temp_dir() .. "/made" })).never.fails()
end)
