-- Arguments arrive in :args order; a missing optional one is nil.
return function(text, unique)
  local count, seen = 0, {}
  for word in string.gmatch(text, "%S+") do
    if not (unique and seen[word]) then
      count += 1
    end
    seen[word] = true
  end
  return { words = count }
end
