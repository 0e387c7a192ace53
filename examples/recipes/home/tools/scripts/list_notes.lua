return function()
  local names = json.array({})
  for _, entry in fs.list("../notes") do
    table.insert(names, entry.name)
  end
  return names
end
