-- expect: ok
return function()
  local ok = pcall(json.decode, "0." .. string.rep("123456789", 100000) .. "e5")
  local also = pcall(json.decode, string.rep("9", 900000))
  return type(ok) == "boolean" and type(also) == "boolean"
end
