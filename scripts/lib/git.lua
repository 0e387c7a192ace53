-- Runs git for read-only tools, without prompts and without programs that the repository configures. Errors contain git's
-- message.

local attempt = require("./attempt")

-- Disables pagers, optional locks, hooks, file system monitors and embedded bare repositories.
local OPTIONS = {
  "git",
  "--no-pager",
  "--no-optional-locks",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "safe.bareRepository=explicit",
  "-c",
  "color.ui=false",
}

local function trim(text)
  local first = string.find(text, "%S")
  return if first then string.sub(text, first, -(string.find(string.reverse(text), "%S") :: number)) else ""
end

local function run(options, arguments)
  local argv = table.clone(options)
  for _, argument in arguments do
    table.insert(argv, argument)
  end
  return attempt(process.run, argv, { max_output = 200000 })
end

-- Returns options that also disable the configured filters, which are programs that git runs on files.
local function without_filters()
  local options = table.clone(OPTIONS)
  local ended = run(OPTIONS, { "config", "--name-only", "-z", "--get-regexp", "^filter\\." })
  local seen = {}
  for _, key in string.split(ended.stdout, "\0") do
    local name = string.match(key, "^filter%.(.*)%.[^.]*$")
    if name and not seen[name] then
      seen[name] = true
      if string.find(name, "=", 1, true) or ended.truncated then
        error(tool.failure("the repository has filters that cannot be disabled"))
      end
      for _, setting in { "clean=", "smudge=", "process=", "required=false" } do
        table.insert(options, "-c")
        table.insert(options, `filter.{name}.{setting}`)
      end
    end
  end
  return options
end

-- Returns the output of git, and whether it was truncated.
return function(arguments)
  local ended = run(without_filters(), arguments)
  if not ended.ok then
    local message = trim(ended.stderr)
    if string.find(message, "not a git repository", 1, true) then
      message = "the project is not in a git repository"
    end
    error(tool.failure(if message == "" then `git exited with code {ended.code}` else message))
  end
  return ended.stdout, ended.truncated
end
