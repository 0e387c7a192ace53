-- What the tools for files share: failures worded for a model.

local files = {}

-- Calls a function of `fs` or `text`: what goes wrong is told to the model without the place in a script, which says
-- nothing to it. What is not allowed stays what it is.
function files.attempt(called, ...)
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

-- The kind of what is at `path`; a failure where there is nothing.
function files.look(path)
  local found = files.attempt(fs.stat, path)
  if not found then
    error(tool.failure(`there is no {path}; find_files and list_directory show what there is`))
  end
  return found
end

function files.expect_file(path)
  local found = files.look(path)
  if found.kind == "directory" then
    error(tool.failure(`{path} is a folder; list_directory shows what is in it`))
  elseif found.kind ~= "file" then
    error(tool.failure(`{path} is no regular file`))
  end
  return found
end

function files.expect_folder(path)
  if files.look(path).kind ~= "directory" then
    error(tool.failure(`{path} is a file, not a folder`))
  end
end

-- The text of a file; a failure where it is none.
function files.read_text(path)
  files.expect_file(path)
  return files.attempt(fs.read, path)
end

return files
