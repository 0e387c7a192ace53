-- expect: timeout
return function()
  local t = {}
  for i = 1, 100000 do t["k" .. i] = i end
  for key in t do t[key] = nil end
  while true do next(t) end
end
