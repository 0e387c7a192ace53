-- expect: script or memory or timeout
-- says: m
return function()
  local grown = "ab"
  while true do grown = text.replace(grown, "a", "aab") end
end
