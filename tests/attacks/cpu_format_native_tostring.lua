-- expect: timeout or script
-- One call of string.format with thousands of values, each of which joins a long list.
return function()
  local t = setmetatable(table.create(300000, ""), { __tostring = table.concat })
  local form = string.rep("%*", 5000)
  while true do pcall(string.format, form, unpack(table.create(5000, t))) end
end
