-- expect: timeout
return function()
  local t = setmetatable({}, { __newindex = function() while true do end end })
  while true do pcall(function() t.x = 1 end) end
end
