-- expect: timeout or script
-- A comparator in C has no safepoint.
return function()
  local t = table.create(500000, 0 / 0)
  while true do pcall(table.sort, t, rawequal) end
end
