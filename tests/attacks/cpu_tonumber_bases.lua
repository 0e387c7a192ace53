-- expect: timeout
return function()
  local digits = string.rep("1", 1000000)
  while true do
    for _, base in { 2, 10, 16, 36, "36", 1e9 } do pcall(tonumber, digits, base) end
    pcall(tonumber, "0x" .. digits)
    pcall(tonumber, "." .. digits .. "e-" .. digits)
    pcall(function() return digits + 1 end)
  end
end
