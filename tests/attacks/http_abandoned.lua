-- expect: timeout
-- twice: true
-- Unfinished requests in coroutines must not affect the next call.
return function()
  for i = 1, 10 do
    task.spawn(function()
      pcall(coroutine.wrap(function() http.get("http://127.0.0.1/") end))
    end)
    coroutine.resume(coroutine.create(function() http.get("http://127.0.0.1/") end))
  end
  while true do task.wait(0.01) end
end
