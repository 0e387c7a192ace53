-- expect: ok
-- deadline: 5000
-- says: []
-- read: box/
-- write: box/
-- Hidden files in a granted folder, through every path and link.
return function()
  local got = json.array({})
  for _, path in {
    "box/.env", "box/./.env", "box//.env", "box/dir/../.env", "box/link_env", "box/.git/config", "box/link_git/config",
    "box/link_inside/../link_env", "box/link_git/../.env", "box/.git/../.env", "box/.env/", "./box/.env",
    "box/.git", "box/link_git", "box/.git/new", "box/link_git/new", "box/.new/x", "box/.env\0", "box/dir/inner/../../.env",
  } do
    local calls = {
      read = fs.read, lines = fs.lines, read_bytes = fs.read_bytes, list = fs.list, stat = fs.stat, exists = fs.exists,
    }
    for name, use in calls do
      if pcall(use, path) then table.insert(got, name .. " " .. path) end
    end
    for name, use in { write = fs.write, append = fs.append } do
      if pcall(use, path, "x") then table.insert(got, name .. " " .. path) end
      if pcall(use, path, "x", { parents = true }) then table.insert(got, name .. " parents " .. path) end
    end
    -- Links themselves are not hidden.
    if not string.find(path, "link_%a+$") then
      if pcall(fs.mkdir, path, { parents = true }) then table.insert(got, "mkdir " .. path) end
      if pcall(fs.remove, path, { recursive = true }) then table.insert(got, "remove " .. path) end
      if pcall(fs.rename, path, "box/taken") then table.insert(got, "rename " .. path) end
      if pcall(fs.rename, "box/a.txt", path) then table.insert(got, "rename to " .. path) end
    end
  end
  for _, pattern in { "box/**", "box/.*", "box/.git/*", "box/link_git/*", "box/[.]*" } do
    local ok, paths = pcall(fs.glob, pattern, { kind = "any", hidden = true })
    for _, path in if ok then paths else {} do
      if string.find(path, "/.", 1, true) or string.find(path, "config", 1, true) then table.insert(got, path) end
    end
  end
  for _, entry in fs.list("box") do
    if string.sub(entry.name, 1, 1) == "." then table.insert(got, entry.name) end
  end
  return got
end
