-- expect: timeout
return function()
  local text = string.rep("a ", 2000000)
  while true do for _ in text:gmatch("%f[%a].-%f[%A]z") do end end
end
