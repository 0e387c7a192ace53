-- expect: timeout or memory
return function()
  local text = string.rep("x", 2000000)
  while true do text = text:reverse():upper():lower() end
end
