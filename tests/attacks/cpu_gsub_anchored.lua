-- expect: timeout or ok or memory
return function()
  local text = string.rep("ab", 500000)
  for i = 1, 1000 do text:gsub("^(a*)(b*)$", "%2%1") end
  return 1
end
