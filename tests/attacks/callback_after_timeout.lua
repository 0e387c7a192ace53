-- expect: timeout
-- async: true
return function(done)
  pcall(function() while true do end end)
  done("late")
end
