-- expect: memory
-- The error is caught and the result returned at once: it counts all the same.
return function()
  pcall(function() local kept = {} while true do kept[#kept + 1] = { 1, 2, 3 } end end)
  return "survived"
end
