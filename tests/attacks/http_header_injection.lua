-- expect: script
-- says: line end
return function()
  return http.get("http://127.0.0.1/", { headers = { ["x-a"] = "b\r\nhost: evil.example" } }).body
end
