-- expect: script or timeout
-- says: s
-- write: box/
return function()
  local much = string.rep("x", 4194304)
  for i = 1, 1000 do fs.write("box/flood" .. i % 3, much) end
end
