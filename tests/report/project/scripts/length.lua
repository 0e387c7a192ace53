return function(text, unit)
  return #text
end
