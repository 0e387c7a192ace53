-- expect: memory
-- The error is caught and a result is returned, but the call still ends with the memory error.
return function()
  pcall(function() local kept = {} while true do kept[#kept + 1] = { 1, 2, 3 } end end)
  return "survived"
end
