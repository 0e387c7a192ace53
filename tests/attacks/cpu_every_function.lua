-- expect: timeout or memory
-- Calls every library function with hostile arguments, in arbitrary order.
return function()
  local long = table.create(300000, "")
  local mark = { __eq = table.find, __lt = table.find, __concat = table.concat, __tostring = table.concat, __index = table.concat }
  local marked = setmetatable(table.clone(long), mark)
  local text_ = string.rep("ab(%d", 20000)
  local values = {
    1, 0, -1, "1", "1e9", 1e9, -1e9, 0 / 0, 1 / 0, 1e308, 2 ^ 31, -2 ^ 31, 0.5, true, "", "x", "%s", text_, long, marked, {},
    { marked, marked }, rawequal, table.concat, table.find, table.maxn, string.len, select, buffer.create(100000),
    vector.create(1, 2, 3), coroutine.create(table.concat), "n", "k", "*", "!16s",
  }
  local left_out = { wait = true, rep = true, yield = true, spawn = true, delay = true, create = true }
  local called = {}
  for _, library in { string, table, utf8, math, bit32, buffer, vector, os, coroutine, json, text, time, log, tool } do
    for name, value in library do
      if type(value) == "function" and not left_out[name] then table.insert(called, value) end
    end
  end
  for _, value in { tostring, tonumber, rawequal, rawlen, rawget, next, pairs, ipairs, select, unpack, type, getmetatable, setmetatable, assert, error, print, pcall, xpcall } do
    table.insert(called, value)
  end
  local any = function() return values[math.random(#values)] end
  while true do
    pcall(called[math.random(#called)], any(), any(), any(), any())
  end
end
