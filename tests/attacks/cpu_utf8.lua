-- expect: timeout
return function()
  local text = string.rep("\u{10FFFF}", 500000)
  while true do utf8.len(text) for _ in utf8.codes(text) do end end
end
