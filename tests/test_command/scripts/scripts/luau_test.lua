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
