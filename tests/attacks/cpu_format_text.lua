-- expect: timeout or memory or script
return function()
  local text = string.rep("x", 1000000)
  while true do string.format(string.rep("%s", 8), text, text, text, text, text, text, text, text) end
end
