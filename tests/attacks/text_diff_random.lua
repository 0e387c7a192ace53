-- expect: ok or timeout
return function()
  local function random()
    local lines = {}
    for i = 1, 2000 do lines[i] = tostring(math.random(0, 99999)) end
    return string.rep(table.concat(lines, "\n"), 90)
  end
  return #text.diff(random(), random()) > 0
end
