-- expect: ok or timeout or memory
return function()
  local members = {}
  for i = 1, 30000 do members[i] = '"' .. i .. '":0' end
  local text = "{" .. table.concat(members, ",") .. "}"
  for i = 1, 20 do json.decode(text) end
  return 1
end
