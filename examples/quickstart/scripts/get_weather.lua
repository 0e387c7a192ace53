-- Degrees celsius. A real tool would ask a weather service.
local celsius = { paris = 21, rome = 18, oslo = 3, lima = 24, tokyo = 16, berlin = 9 }

-- Arguments arrive in :args order; a missing optional one is nil.
return function(location, unit)
  -- "Paris, France" is Paris.
  local city = string.match(location, "^%s*([^,]-)%s*$") or string.match(location, "^%s*([^,]-)%s*,")
  local degrees = city and celsius[string.lower(city)]
  if degrees == nil then
    -- Not knowing a place is an answer, not a failure.
    return { found = false }
  end
  unit = unit or "celsius"
  if unit == "fahrenheit" then
    degrees = degrees * 9 / 5 + 32
  end
  return { location = city, temperature = degrees, unit = unit }
end
