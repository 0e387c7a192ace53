-- expect: timeout or script
-- One instruction with two hundred operands. Each operand is the highest key of a long list.
return function()
  local t = table.create(500000, 0)
  setmetatable(t, { __concat = table.maxn })
  while true do
    local _ = t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. ""
  end
end
