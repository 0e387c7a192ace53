-- Calls a host function: what goes wrong is told to the model without the place in a script, which says
-- nothing to it. What is not allowed stays what it is.
return function(called, ...)
  local results = table.pack(pcall(called, ...))
  if results[1] then
    return table.unpack(results, 2, results.n)
  end
  local said = tostring(results[2])
  if string.find(said, " is not allowed", 1, true) then
    return called(...)
  end
  return error(tool.failure((string.gsub(said, "^[^:]*:%d+: [%a_.]+: ", ""))))
end
