-- expect: ok
-- says: []
-- read: box/
-- write: box/
return function()
  local got = json.array({})
  for _, path in {
    "outside/secret", "box/../outside/secret", "box/dir/../../outside/secret", "./box//.././outside/secret",
    "../outside/secret", "box/..", "..", "/", "/etc/passwd", "/etc/../etc/passwd", "box/../../../../../etc/passwd", "",
    "box\0/../outside/secret", "~/x", "file:///etc/passwd", "boxes/../outside/secret", "box/dir/inner/../../../outside/secret",
    "BOX/../outside/secret", "//outside/secret", "/proc/self/cwd/outside/secret",
  } do
    for name, use in { read = fs.read, lines = fs.lines, read_bytes = fs.read_bytes, list = fs.list, stat = fs.stat } do
      if pcall(use, path) then table.insert(got, name .. " " .. path) end
    end
    for name, use in { write = fs.write, append = fs.append } do
      if pcall(use, path, "x") then table.insert(got, name .. " " .. path) end
    end
    if pcall(fs.mkdir, path) then table.insert(got, "mkdir " .. path) end
    if pcall(fs.remove, path, { recursive = true }) then table.insert(got, "remove " .. path) end
    if pcall(fs.rename, "box/a.txt", path) then table.insert(got, "rename to " .. path) end
    if pcall(fs.rename, path, "box/taken") then table.insert(got, "rename from " .. path) end
  end
  return got
end
