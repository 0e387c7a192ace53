return function()
  http.get(process)
  return 1
end
