-- expect: timeout
-- Rejected requests cost no more than other errors, even many of them.
return function()
  task.spawn(function() while true do pcall(http.get, "http://127.0.0.1/") end end)
  while true do pcall(http.post, "http://[::1]:1/", "body") end
end
