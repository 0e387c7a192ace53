-- expect: memory
return function()
  xpcall(function() local kept = {} while true do kept[#kept + 1] = { 1, 2, 3 } end end, function() return 1 end)
  return "survived"
end
