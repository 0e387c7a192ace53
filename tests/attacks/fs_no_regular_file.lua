-- expect: ok
-- says: []
-- read: box/
-- write: box/
return function()
  local got = json.array({})
  for _, path in { "box/pipe", "box/zero", "box/socket", "box/dir", "box", "box/trap/.gitignore" } do
    for name, use in { read = fs.read, lines = fs.lines, read_bytes = fs.read_bytes } do
      if pcall(use, path) then table.insert(got, name .. " " .. path) end
    end
    for name, use in { write = fs.write, append = fs.append } do
      if path ~= "box/zero" and pcall(use, path, "x") then table.insert(got, name .. " " .. path) end
    end
  end
  return got
end
