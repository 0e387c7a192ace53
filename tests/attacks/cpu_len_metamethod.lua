-- expect: timeout
return function()
  return #setmetatable({}, { __len = function() while true do end end })
end
