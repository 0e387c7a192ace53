-- expect: ok
-- says: 1
-- Takes minutes with Luau's own split.
return function()
  return #string.split(string.rep("a", 4000000), string.rep("a", 2000000) .. "b")
end
