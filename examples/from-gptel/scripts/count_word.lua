return function(text, word)
  local count, wanted = 0, string.lower(word)
  for found in string.gmatch(string.lower(text), "[%w_]+") do
    if found == wanted then
      count += 1
    end
  end
  return count
end
