return function(text)
  local lines, seen = {}, {}
  for line in string.gmatch(text, "[^\n]+") do
    if not seen[line] then
      table.insert(lines, line)
    end
    seen[line] = true
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end
