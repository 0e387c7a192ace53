-- What the tools for files share: failures worded for a model.

local attempt = require("./attempt")

local files = {}

-- The kind of what is at `path`; a failure where there is nothing.
function files.look(path)
  local found = attempt(fs.stat, path)
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

-- What a model must not change with a tool for files: what git would run, and what says which tools there are and what
-- they may do.
local KEPT = {
  [".git"] = "git's own files",
  specs = "the specs of the tools",
  scripts = "the scripts of the tools",
}

function files.expect_writable(path)
  local first
  for part in string.gmatch(path, "[^/\\]+") do
    if part == ".." then
      error(tool.failure(`{path}: name the file without ".."`))
    elseif part ~= "." then
      first = first or string.lower(part)
    end
  end
  if string.sub(path, 1, 1) == "/" then
    error(tool.failure(`{path}: name the file relative to the project`))
  end
  -- Of repositories inside the project, too.
  if string.find(`/{string.lower(path)}/`, "/.git/", 1, true) then
    first = ".git"
  end
  if KEPT[first] then
    error(tool.failure(`{path} is not to be changed: {KEPT[first]} are a person's`))
  end
end

function files.expect_folder(path)
  if files.look(path).kind ~= "directory" then
    error(tool.failure(`{path} is a file, not a folder`))
  end
end

-- The text of a file; a failure where it is none.
function files.read_text(path)
  files.expect_file(path)
  return attempt(fs.read, path)
end

return files
