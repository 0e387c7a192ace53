-- expect: memory
return function()
  local kept = {}
  while true do
    pcall(function() while true do kept[#kept + 1] = { 1, 2, 3 } end end)
  end
end
