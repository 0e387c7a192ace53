-- expect: timeout or memory
return function()
  local long = table.create(300000, "")
  while true do
    local co = coroutine.create(table.concat)
    coroutine.resume(co, long)
    coroutine.close(co)
    pcall(coroutine.wrap(table.foreach), { [long] = table.concat }, table.foreach)
    pcall(pcall, pcall, table.concat, long)
    xpcall(error, table.concat, long)
  end
end
