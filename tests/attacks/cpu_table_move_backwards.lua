-- expect: timeout
-- The maximum number of elements, from and to empty positions.
return function()
  local t = {}
  while true do table.move(t, "-4e6", -1, -3999999) end
end
