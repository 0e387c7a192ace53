-- expect: timeout or memory
-- Strings that differ in their last byte.
return function()
  local start = string.rep('a', 15000)
  local t = {}
  for i = 1, 1000 do t[i] = start .. string.format('%05d', i * 7919 % 100003) end
  local all = {}
  for i = 1, 1000000 do all[i] = t[i * 31 % 1000 + 1] end
  while true do table.sort(all) end
end
