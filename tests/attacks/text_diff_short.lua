-- expect: timeout
return function()
  local function random()
    local lines = {}
    for i = 1, 2000 do lines[i] = tostring(math.random(0, 1)) end
    return table.concat(lines, "\n")
  end
  while true do text.diff(random(), random()) end
end
