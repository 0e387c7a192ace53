-- expect: timeout or script
-- One call of string.format with thousands of values, each of which is encoded as JSON.
return function()
  local t = setmetatable(table.create(90000, 1), { __tostring = json.encode })
  local form = string.rep("%*", 5000)
  while true do pcall(string.format, form, unpack(table.create(5000, t))) end
end
