-- expect: timeout
return function()
  local i = 0
  while true do
    i += 1
    pcall(text.matches, "a", "\\pL{20}\\w{20}" .. i)
  end
end
