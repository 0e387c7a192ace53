-- expect: timeout
-- As many numbers as are sorted without a safepoint, mostly in order, so that the middle is a bad pivot.
return function()
  local t = table.create(1000000, 0)
  while true do
    for i = 1, #t do t[i] = if i % 2 == 0 then i else -i end
    table.sort(t)
  end
end
