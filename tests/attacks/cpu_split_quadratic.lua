-- expect: ok
-- says: 1
-- Takes minutes with Luau's own split.
return function()
  return #string.split(string.rep("a", 800000), string.rep("a", 400000) .. "b")
end
