-- expect: timeout or script
-- One instruction with two hundred operands. Each operand is encoded as JSON.
return function()
  local t = table.create(90000, 1)
  setmetatable(t, { __concat = json.encode })
  while true do
    local _ = t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. ""
  end
end
