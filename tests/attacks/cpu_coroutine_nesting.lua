-- expect: timeout or script
local function nest()
  local co = coroutine.wrap(nest)
  return co()
end
return function() while true do pcall(nest) end end
