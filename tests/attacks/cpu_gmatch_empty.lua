-- expect: timeout
return function()
  local text = string.rep("a", 1000000)
  while true do for _ in text:gmatch("") do end end
end
