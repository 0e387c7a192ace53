return function(name)
  return "deleted " .. name
end
