-- expect: timeout
return function()
  local text, pattern = string.rep("b", 1000000), "[^" .. string.rep("a", 100) .. "]*"
  while true do string.gsub(text, pattern, "") end
end
