return function(containing)
  local names = json.array({})
  for _, entry in fs.list("notes") do
    if string.find(entry.name, "%.org$") and string.find(entry.name, containing or "", 1, true) then
      table.insert(names, entry.name)
    end
  end
  return names
end
