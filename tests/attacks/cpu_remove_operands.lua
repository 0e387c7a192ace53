-- expect: timeout or script
-- Each operand removes the first element of a long list.
return function()
  local t = setmetatable(table.create(500000, 1), { __concat = table.remove })
  while true do
    local _ = t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. 1
  end
end
