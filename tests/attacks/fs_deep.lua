-- expect: ok
-- says: levels deep
-- read: box/
-- write: box/
return function()
  local paths, more = fs.glob("box/deep/**", { kind = "directory" })
  assert(#paths == 100, #paths)
  assert(not pcall(fs.read, "box/deep/" .. string.rep("d/", 3000)))
  assert(not pcall(fs.mkdir, "box/" .. string.rep("e/", 3000), { parents = true }))
  local ok, message = pcall(fs.remove, "box/deep", { recursive = true })
  assert(not ok and fs.exists("box/deep/" .. string.rep("d/", 300)))
  return message
end
