-- expect: timeout
-- The equality metamethod searches a list whose elements are compared the same way: 2^60 searches in a few tables.
return function()
  local mark = {}
  local function deep()
    local list = setmetatable({}, mark)
    for _ = 1, 60 do list = setmetatable({ list, list }, mark) end
    return list
  end
  local one, other = deep(), deep()
  mark.__eq = table.find
  return table.find(one, other)
end
