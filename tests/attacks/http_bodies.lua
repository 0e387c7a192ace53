-- expect: permission
-- Bodies are copied for a few requests at a time, and never for a rejected request.
return function()
  local body = string.rep("x", 4000000)
  for i = 1, 900 do task.spawn(http.post, "http://127.0.0.1/", body) end
  task.wait(1)
end
