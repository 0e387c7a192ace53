-- expect: timeout
-- read: box/
-- write: box/
-- deadline: 1000
return function()
  local ok, message = pcall(fs.list, "box/many")
  assert(not ok and string.find(message, "more than 10000 entries", 1, true), message)
  ok, message = pcall(fs.remove, "box/many", { recursive = true })
  assert(not ok and string.find(message, "more than 10000 files", 1, true), message)
  local paths, more = fs.glob("box/many/*", { limit = 5 })
  assert(#paths == 5 and more and paths[5] == "box/many/1000", paths[5])
  while true do fs.glob("box/**/9*", { limit = 100000 }) end
end
