-- `time`, `json` and waiting.

test('time and JSON', function()
  expect(time.iso(0)).is('1970-01-01T00:00:00Z')
  expect(time.format('%A', 86400)).is('Friday')
  expect(time.format('%H:%M', 0, 'Europe/Paris')).is('01:00')
  expect(time.now() > 1.7e9 and time.monotonic() >= 0).is(true)
  expect(json.encode({ b = json.null, a = json.array({}) })).is('{"a":[],"b":null}')
  expect(json.decode('[1, null, {"x": 2.5}]')).equals({ 1, json.null, { x = 2.5 } })
  expect(json.decode('{"id": 9007199254740993}', { big_integers = 'string' }).id).is('9007199254740993')
  expect(function()
    json.decode('{"a": [9007199254740993]}')
  end).fails('json.decode: cannot decode at .a[0]: the integer 9007199254740993 is beyond 2^53, where a Lua number is no longer exact')
end)

test('coroutines can wait', function()
  local seen = {}
  local function waits(x)
    task.wait(0.01)
    local y = coroutine.yield(x + 1)
    task.wait(0)
    return y
  end
  local co = coroutine.create(waits)
  table.insert(seen, (select(2, coroutine.resume(co, 1))))
  table.insert(seen, (select(2, coroutine.resume(co, 'end'))))
  table.insert(seen, coroutine.status(co))
  local function counts()
    for i = 1, 2 do
      task.wait(0.001)
      coroutine.yield(i)
    end
  end
  for value in coroutine.wrap(counts) do
    table.insert(seen, value)
  end
  expect(seen).equals({ 2, 'end', 'dead', 1, 2 })
  expect(function()
    task.wait(0.001)
    error('after waiting')
  end).fails('host_test.lua:40: after waiting')
  expect(function()
    table.sort({ 3, 1, 2 }, function(a, b)
      task.wait(0.01)
      return a < b
    end)
  end).fails('cannot wait inside a sort comparator')
end)
