-- expect: ok
-- says: []
-- read: box/
-- write: box/
return function()
  local got = json.array({})
  for _, path in {
    "box/link_file", "box/link_full", "box/link_dir/secret", "box/link_dir/dir/x", "box/link_dir/new", "box/link_proc",
    "box/loop", "box/loop/x", "box/dangling", "box/link_inside/../../outside/secret",
  } do
    for name, use in { read = fs.read, lines = fs.lines, read_bytes = fs.read_bytes } do
      if pcall(use, path) then table.insert(got, name .. " " .. path) end
    end
    for name, use in { write = fs.write, append = fs.append } do
      if pcall(use, path, "x") then table.insert(got, name .. " " .. path) end
      if pcall(use, path, "x", { parents = true }) then table.insert(got, name .. " " .. path) end
    end
    if pcall(fs.mkdir, path, { parents = true }) then table.insert(got, "mkdir " .. path) end
  end
  if pcall(fs.list, "box/link_dir") then table.insert(got, "list") end
  if pcall(fs.remove, "box/link_dir/secret") then table.insert(got, "remove") end
  if pcall(fs.rename, "box/link_dir/secret", "box/taken") then table.insert(got, "rename") end
  if pcall(fs.rename, "box/a.txt", "box/link_dir/put") then table.insert(got, "rename into") end
  for _, path in (fs.glob("box/**", { kind = "any", hidden = true })) do
    if string.find(path, "secret", 1, true) or string.find(path, "link_dir/", 1, true) then table.insert(got, path) end
  end
  return got
end
