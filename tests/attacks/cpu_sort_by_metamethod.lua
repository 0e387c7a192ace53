-- expect: timeout or script
return function()
  local mark = { __lt = function() return true end }
  local t = {}
  for i = 1, 20000 do t[i] = setmetatable({}, mark) end
  while true do pcall(table.sort, t) end
end
