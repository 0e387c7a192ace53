-- expect: memory or script
return function()
  return json.decode("[" .. string.rep("[],", 400000) .. "1]")
end
