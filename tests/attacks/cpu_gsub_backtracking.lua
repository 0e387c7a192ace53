-- expect: timeout
return function()
  return (string.gsub(string.rep("a", 40000), ".-.-.-.-b", "x"))
end
