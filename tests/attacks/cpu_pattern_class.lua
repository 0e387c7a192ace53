-- expect: script
-- says: classes are too long
-- A greedy class is matched along the whole text between two safepoints: 10^12 steps.
return function()
  return string.match(string.rep("b", 1000000), "[^" .. string.rep("a", 1000000) .. "]*")
end
