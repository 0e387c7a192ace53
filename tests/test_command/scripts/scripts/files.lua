return function()
  http.get(fs)
  return 1
end
