-- expect: timeout
-- What is refused costs no more than any other error, however often it is tried.
return function()
  task.spawn(function() while true do pcall(http.get, "http://127.0.0.1/") end end)
  while true do pcall(http.post, "http://[::1]:1/", "body") end
end
