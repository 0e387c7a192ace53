-- expect: timeout
return function()
  local t = {}
  while true do table.insert(t, 1, 1) if #t > 200000 then t = {} end end
end
