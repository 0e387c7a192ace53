-- expect: script
return function()
  local t = {}
  for i = 1, 50000 do t = { t, t } end
  error(t)
end
