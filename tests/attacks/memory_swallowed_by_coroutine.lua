-- expect: memory
return function()
  coroutine.resume(coroutine.create(function() local kept = {} while true do kept[#kept + 1] = { 1, 2, 3 } end end))
  return "survived"
end
