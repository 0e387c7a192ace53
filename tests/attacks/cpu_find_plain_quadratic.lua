-- expect: ok
-- says: done
-- Takes minutes with Luau's own search.
return function()
  local text, needle = string.rep("a", 800000), string.rep("a", 400000) .. "b"
  string.find(text, needle, 1, true)
  text:find(needle)
  return "done"
end
