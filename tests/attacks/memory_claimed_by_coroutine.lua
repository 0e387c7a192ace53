-- expect: ok
-- says: goes on
return function()
  local co = coroutine.create(function() error("not enough memory", 0) end)
  coroutine.resume(co)
  pcall(coroutine.wrap(function() error("not enough memory", 0) end))
  return "goes on"
end
