-- expect: timeout
return function()
  local forms = { string.rep("%c", 100000), "%99999999d", string.rep("%255Y", 10000), string.rep("%", 999999), "%:::::z" }
  while true do
    for _, form in forms do
      pcall(time.format, form)
      pcall(time.format, form, "1e15", "UTC")
      pcall(time.format, form, -1e15, string.rep("Europe/", 10000))
      pcall(time.iso, "1e308")
    end
  end
end
