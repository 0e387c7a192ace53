return function(text)
  local _, count = text:gsub("%S+", "")
  return count
end
