-- expect: script
-- says: form has more than 1000 values
return function()
  http.post("http://127.0.0.1/", nil, { form = { a = table.create(1000000, "") } })
end
