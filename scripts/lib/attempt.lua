-- Calls a host function and converts its error to a failure without the location in the script, which is not useful to a
-- model. Permission errors are raised unchanged.
return function(called, ...)
  local results = table.pack(pcall(called, ...))
  if results[1] then
    return table.unpack(results, 2, results.n)
  end
  local message = tostring(results[2])
  if string.find(message, " is not allowed", 1, true) then
    return called(...)
  end
  return error(tool.failure((string.gsub(message, "^[^:]*:%d+: [%a_.]+: ", ""))))
end
