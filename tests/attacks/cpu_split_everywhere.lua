-- expect: timeout or memory
return function()
  local text = string.rep(",", 200000)
  while true do text:split(",") end
end
