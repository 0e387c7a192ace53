-- expect: script
-- says: classes are too long
-- A bracket in the first position is part of the class.
return function()
  return string.match(string.rep("b", 1000000), "[^]" .. string.rep("a", 1000000) .. "]*")
end
