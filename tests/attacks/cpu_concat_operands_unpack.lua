-- expect: timeout or script
-- One instruction with two hundred operands. Each operand unpacks a long list.
return function()
  local t = table.create(7000, 1)
  setmetatable(t, { __concat = unpack })
  while true do
    local _ = t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. 1
  end
end
