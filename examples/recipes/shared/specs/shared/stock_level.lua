return function(part)
  local reply = http.get("https://stock.example.org/parts/" .. part)
  if reply.status == 404 then
    error(tool.failure("there is no part " .. part))
  end
  return json.decode(reply.body).pieces
end
