-- expect: script
-- says: larger than
return function()
  local text = string.rep("\0", 100000)
  local t = table.create(100, text)
  return json.encode(t)
end
