-- expect: script or timeout or memory
return function()
  local t = {}
  for i = 1, 1e6 do t = setmetatable({}, { __index = t }) end
  return t.missing
end
