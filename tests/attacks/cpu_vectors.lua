-- expect: timeout
return function()
  local v = vector.create(1e38, -1e38, 0 / 0)
  while true do
    for _, called in vector do
      if type(called) == "function" then pcall(called, v, v, v) pcall(called, "1e308", 1, "nan") end
    end
  end
end
