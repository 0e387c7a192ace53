-- expect: timeout or memory
-- Numbers alone are sorted without a safepoint, but only a million at a time.
return function()
  local t = table.create(2500000, 0)
  for i = 1, #t do t[i] = math.random() end
  while true do table.sort(t) end
end
