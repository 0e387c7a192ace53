-- expect: memory or timeout
return function()
  local s = "x"
  while true do s = string.gsub(s, ".", "%0%0%0%0") end
end
