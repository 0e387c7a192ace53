-- expect: timeout
-- Without a comparator Luau sorts without a safepoint; each comparison reads three megabytes.
return function()
  local one, other = string.rep("a", 3000000) .. "b", string.rep("a", 3000000) .. "c"
  local t = {}
  for i = 1, 100000 do t[i] = i % 2 == 0 and one or other end
  table.sort(t)
end
