-- expect: timeout
local function deeper(depth)
  while true do
    if depth > 0 then pcall(deeper, depth - 1) end
  end
end
return function() deeper(50) end
