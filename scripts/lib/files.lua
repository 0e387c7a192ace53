-- What the tools for files share: failures worded for a model.

local files = {}

-- The kind of what is at `path`; a failure where there is nothing.
function files.look(path)
  local found = fs.stat(path)
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
  local known, text = pcall(fs.read, path)
  if not known then
    -- Without the place in this script, which says nothing to a model.
    error(tool.failure((string.gsub(text, "^[^:]*:%d+: fs%.read: ", ""))))
  end
  return text
end

return files
