-- expect: timeout
return function()
  while true do
    xpcall(function() error("x") end, function(e) error(e) end)
  end
end
