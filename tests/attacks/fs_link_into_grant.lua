-- expect: ok
-- deadline: 5000
-- says: []
-- read: box/dir/inner/
-- write: box/
-- Moves an existing link to a granted path.
return function()
  local got = json.array({})
  pcall(fs.remove, "box/dir/inner")
  for _, to in { "box/dir/inner", "box/dir/../dir/inner", "box/link_inside/inner" } do
    pcall(fs.rename, "box/link_dir", to)
    if pcall(fs.read, "box/dir/inner/secret") then table.insert(got, to) end
  end
  return got
end
