-- expect: timeout
return function()
  return (string.gsub(string.rep("x", 1000), "x", function() while true do end end))
end
