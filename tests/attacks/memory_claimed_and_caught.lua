-- expect: ok
-- says: goes on
return function()
  pcall(error, "not enough memory", 0)
  return "goes on"
end
