-- expect: timeout or ok
return function()
  local text = string.rep("\27[31m\u{202E}", 500000)
  for i = 1, 2000 do print(text, text) tool.progress(0.5, text) tool.log("info", text) end
  return 1
end
