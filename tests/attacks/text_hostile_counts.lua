-- expect: timeout or memory
return function()
  local text_ = string.rep("a b\n", 100000)
  local hostile = { 1e308, -1e308, "1e9", 0, 1, 0.5, 2147483648, text_, "", {} }
  while true do
    for _, called in text do
      if type(called) == "function" then
        for _, one in hostile do pcall(called, text_, one, one, one) end
      end
    end
  end
end
