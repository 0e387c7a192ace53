-- expect: memory or script or timeout
return function()
  return json.decode("[" .. string.rep("[],", 400000) .. "1]")
end
