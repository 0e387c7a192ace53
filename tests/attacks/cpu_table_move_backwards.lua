-- expect: timeout
-- As many as it may be, from a place where nothing is to another.
return function()
  local t = {}
  while true do table.move(t, "-4e6", -1, -3999999) end
end
