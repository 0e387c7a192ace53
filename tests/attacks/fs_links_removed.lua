-- expect: ok
-- deadline: 5000
-- says: true
-- read: box/
-- write: box/
-- write: box/trap/.gitignore
-- Links are removed, their targets are not.
return function()
  for _, name in { "link_dir", "link_file", "link_full", "loop", "twin" } do
    if fs.glob("box/" .. name, { kind = "any" })[1] then fs.remove("box/" .. name, { recursive = true }) end
  end
  fs.mkdir("box/around", { parents = true })
  for _, name in { "dangling", "pipe", "socket", "trap", "dir" } do
    if #(fs.glob("box/" .. name, { kind = "any" })) > 0 then fs.remove("box/" .. name, { recursive = true }) end
  end
  return not fs.exists("box/dir")
end
