-- Functions that the file tools share. Their errors are messages for a model.

local attempt = require("./attempt")

local files = {}

-- Returns the metadata of `path`. Fails if it does not exist.
function files.look(path)
  local found = attempt(fs.stat, path)
  if not found then
    error(tool.failure(`{path} does not exist; use find_files or list_directory to find files`))
  end
  return found
end

function files.expect_file(path)
  local found = files.look(path)
  if found.kind == "directory" then
    error(tool.failure(`{path} is a folder; use list_directory`))
  elseif found.kind ~= "file" then
    error(tool.failure(`{path} is not a regular file`))
  end
  return found
end

-- Paths that a model must not change with the file tools: files that make git run programs, and files that define the
-- tools and their permissions.
local PROTECTED = {
  [".git"] = "git's own files",
  specs = "the specs of the tools",
  scripts = "the scripts of the tools",
}

function files.expect_writable(path)
  local first
  for part in string.gmatch(path, "[^/\\]+") do
    if part == ".." then
      error(tool.failure(`{path}: the path must not contain ".."`))
    elseif part ~= "." then
      first = first or string.lower(part)
    end
  end
  if string.sub(path, 1, 1) == "/" then
    error(tool.failure(`{path}: the path must be relative to the project`))
  end
  -- Also in nested repositories.
  if string.find(`/{string.lower(path)}/`, "/.git/", 1, true) then
    first = ".git"
  end
  if PROTECTED[first] then
    error(tool.failure(`{path} must not be changed: it is part of {PROTECTED[first]}`))
  end
end

function files.expect_folder(path)
  if files.look(path).kind ~= "directory" then
    error(tool.failure(`{path} is a file, not a folder`))
  end
end

-- Returns the contents of a text file. Fails if it is not one.
function files.read_text(path)
  files.expect_file(path)
  return attempt(fs.read, path)
end

return files
