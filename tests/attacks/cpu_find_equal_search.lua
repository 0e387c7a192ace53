-- expect: timeout
-- Equality is a search, in lists whose elements are searched for equality: 2^60 of them in a few tables.
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
