-- expect: timeout
return function()
  local t = {}
  for i = 1, 50000 do t[i] = i end
  while true do json.encode(t) end
end
