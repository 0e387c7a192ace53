-- expect: timeout
-- Functions that take long for certain numbers.
return function()
  local hostile = { 1e308, 5e-324, -1e308, 1 / 0, -1 / 0, 0 / 0, 2 ^ 53, "1e308", "0x1p-1074", 2147483648, -2147483649 }
  while true do
    for name, called in math do
      if type(called) == "function" then
        for _, one in hostile do
          for _, other in hostile do pcall(called, one, other, one) end
        end
      end
    end
    for name, called in bit32 do
      for _, one in hostile do
        for _, other in hostile do pcall(called, one, other, one) end
      end
    end
  end
end
