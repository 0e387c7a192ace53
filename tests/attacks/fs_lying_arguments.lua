-- expect: ok
-- says: []
-- read: box/
-- write: box/
return function()
  local got = json.array({})
  local lie = setmetatable({}, {
    __tostring = function() return "box/a.txt" end,
    __index = function() return true end,
    __iter = function() while true do end end,
  })
  for _, path in { lie, true, 0 / 0, print, coroutine.create(print), buffer.create(3), json.null } do
    if pcall(fs.read, path) then table.insert(got, tostring(path)) end
    if pcall(fs.write, path, "x") and type(path) ~= "number" then table.insert(got, tostring(path)) end
    if pcall(fs.write, "box/lie", path) and type(path) ~= "number" then table.insert(got, tostring(path)) end
    if pcall(fs.lines, "box/a.txt", { from = path }) then table.insert(got, tostring(path)) end
  end
  -- Metatables of options are not consulted.
  fs.mkdir("box/lied", lie)
  if pcall(fs.mkdir, "box/lied", lie) then table.insert(got, "parents") end
  for _, number in { -1, 0, 1.5, 1e300, math.huge, -math.huge, 0 / 0 } do
    if pcall(fs.lines, "box/a.txt", { from = number }) then table.insert(got, tostring(number)) end
    if pcall(fs.glob, "*", { root = "box", limit = number }) then table.insert(got, tostring(number)) end
  end
  return got
end
