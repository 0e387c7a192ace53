-- expect: ok
-- deadline: 5000
-- says: []
return function()
  local got = json.array({})
  for _, bad in { "\255", "a\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\xAF" } do
    if text.valid(bad) then table.insert(got, "valid") end
    for name, use in { length = text.length, trim = text.trim, lower = text.lower, upper = text.upper, escape = text.escape } do
      if pcall(use, bad) then table.insert(got, name) end
    end
    if pcall(text.sub, bad, 1) or pcall(text.wrap, bad, 5) or pcall(text.truncate, bad, 5) or pcall(text.diff, bad, bad) then
      table.insert(got, "others")
    end
    if pcall(text.matches, "a", bad) then table.insert(got, "pattern") end
    assert(text.count(bad .. "z" .. bad, "z") == 1 and assert(text.find(bad .. "z", "z")).first == #bad + 1)
  end
  return got
end
