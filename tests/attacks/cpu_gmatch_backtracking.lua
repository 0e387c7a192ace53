-- expect: timeout
return function()
  for found in string.gmatch(string.rep("a", 40000), ".-.-.-b") do end
end
