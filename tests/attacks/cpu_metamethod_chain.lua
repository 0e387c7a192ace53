-- expect: script or timeout
return function()
  local t = setmetatable({}, {})
  getmetatable(t).__index = function(self, key) return self[key .. "x"] end
  return t.x
end
