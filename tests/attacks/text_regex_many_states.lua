-- expect: script or timeout
return function()
  local bits = {}
  for i = 1, 20000 do bits[i] = tostring(math.random(0, 1)) end
  local random = string.rep(table.concat(bits), 40)
  return text.matches(random, "[01]*1[01]{3000}x")
end
