-- expect: timeout
-- A nested iteration at every key: 2^60 steps in a few tables.
return function()
  local t = {}
  for _ = 1, 60 do
    local one, other = table.clone(t), table.clone(t)
    t = { [one] = table.foreach, [other] = table.foreach }
    if _ > 20 then break end
  end
  while true do table.foreach(t, table.foreach) end
end
