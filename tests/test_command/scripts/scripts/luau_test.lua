-- The replacements in `sandbox.lua` have the same results as Luau's own functions.

test('table.move, table.find and others', function()
  local count = 250000
  local list = table.create(count, 0)
  for i = 1, count do list[i] = i end
  -- Overlapping moves in both directions, in several pieces.
  assert(table.move(list, 1, count, 2) == list)
  assert(list[1] == 1 and list[2] == 1 and list[count + 1] == count and list[150000] == 149999)
  table.move(list, 2, count + 1, 1)
  for i = 1, count do assert(list[i] == i) end
  local other = table.move(list, '1', count, 3.9, {})
  assert(other[2] == nil and other[3] == 1 and other[count + 2] == count)
  assert(not pcall(table.move, list, 1, count, 2, 5) and not pcall(table.move, list, 1, 2, {}))
  assert(#table.move({}, 1, 0, 1) == 0)

  local mark = { __eq = function(one, other) return one.id == other.id end }
  local function new(id) return setmetatable({ id = id }, mark) end
  local things = { new(1), new(2), 'x', new(3) }
  assert(table.find(things, new(3)) == 4 and table.find(things, new(2), '2') == 2)
  assert(table.find(things, new(1), 2) == nil and table.find(things, 'x') == 3)
  assert(not pcall(table.find, things, new(1), 0))

  local seen = {}
  assert(table.foreach({ a = 1 }, function(k, v) seen[k] = v end) == nil and seen.a == 1)
  assert(table.foreachi({ 5, 6, 7 }, function(i, v) if v == 6 then return i end end) == 2)
  table.sort(list, math.max ~= nil and function(a, b) return a > b end)
  assert(list[1] == count)
  assert(select('#', unpack({ 1, nil, 3 }, 1, 3)) == 3 and table.concat({ 1, 2 }, '-', '1', '2') == '1-2')
end)

test('table.sort of numbers, of strings and of other values', function()
  local function sorted(list)
    table.sort(list)
    return table.concat(list, ' ')
  end
  assert(sorted({}) == '' and sorted({ 3, -1, 2.5, 1 / 0, 2.5 }) == '-1 2.5 2.5 3 inf')
  assert(sorted({ 'b', 'ä', '', 'a\0b', 'a', 'B' }) == ' B a a\0b b ä')

  local function failed(list)
    local ok, problem = pcall(table.sort, list)
    assert(not ok)
    return (string.gsub(problem, '^.*: ', ''))
  end
  -- A comparison of different types has an error, wherever the other type is.
  assert(failed({ 1, 'a' }) == 'attempt to compare string < number')
  assert(failed({ 'a', 'b', 3 }) == 'attempt to compare number < string')
  assert(failed({ true, false }) == 'attempt to compare boolean < boolean')
  assert(failed(table.freeze({ 2, 1 })) == 'attempt to modify a readonly table')
  assert(not pcall(table.sort, nil) and not pcall(table.sort, 'text') and not pcall(table.sort))

  -- A hole counts, because the last position of the array is not nil.
  assert(failed({ 3, nil, 1 }) == 'attempt to compare nil < number')
  -- NaN is neither less nor greater, so the order is not defined.
  local unordered = {}
  for i = 1, 100 do unordered[i] = if i % 3 == 0 then 0 / 0 else -i end
  table.sort(unordered)
  assert(#unordered == 100)

  -- The metamethods of the table are not called; those of its elements are.
  local marked = setmetatable({ 2, 3, 1 }, {
    __index = function() error('read') end,
    __newindex = function() error('written') end,
    __len = function() return 2 end,
    __iter = function() error('iterated') end,
  })
  assert(sorted(marked) == '1 2 3')
  local order = { __lt = function(one, other) return one.at > other.at end }
  local objects = {}
  for i = 1, 5 do objects[i] = setmetatable({ at = i }, order) end
  table.sort(objects)
  assert(objects[1].at == 5 and objects[5].at == 1)

  -- Long enough for the interruptible comparison.
  local long = string.rep('x', 1e6)
  local strings = {}
  for i = 1, 200 do strings[i] = if i % 2 == 0 then long else 'y' end
  table.sort(strings)
  assert(strings[100] == long and strings[101] == 'y')
end)
