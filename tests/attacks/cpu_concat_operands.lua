-- expect: timeout or script
-- One instruction with two hundred operands. Each operand joins the elements of a long list.
return function()
  local t = table.create(500000, "")
  setmetatable(t, { __concat = table.concat })
  while true do
    local _ = t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t
      .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. t .. ""
  end
end
