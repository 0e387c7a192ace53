-- expect: timeout
return function()
  while true do
    for _, year in { 1e9, -1e9, 2147483647, "2147483647", 0 / 0, 1e308 } do
      pcall(os.time, { year = year, month = year, day = year, hour = year, min = year, sec = year })
      pcall(os.date, "!*t", year)
      pcall(os.date, "%c", year)
      pcall(os.difftime, year, -year)
    end
  end
end
