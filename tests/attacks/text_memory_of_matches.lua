-- expect: memory or timeout
return function()
  local long = string.rep("ab", 500000)
  local kept = {}
  while true do
    table.insert(kept, text.find_all(long, string.rep("(", 50) .. "ab" .. string.rep(")", 50)))
  end
end
