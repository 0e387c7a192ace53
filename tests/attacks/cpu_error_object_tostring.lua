-- expect: script
return function()
  error(setmetatable({}, { __tostring = function() while true do end end }))
end
