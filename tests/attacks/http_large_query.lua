-- expect: script
-- says: query has more than 1000 values or 16 KiB
return function()
  local query = {}
  for i = 1, 5000 do query["k" .. i] = string.rep("x", 10) end
  http.get("http://127.0.0.1/", { query = query })
end
