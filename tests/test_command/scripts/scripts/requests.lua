return function()
  env.get(http)
  return 1
end
