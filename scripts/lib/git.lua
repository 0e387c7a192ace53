-- Runs git for the tools that only look: nothing it reads asks anybody anything, and no program of the repository's own
-- choosing is run on the way. What fails is told as git tells it.

local attempt = require("./attempt")

-- No pagers, locks, hooks and watchers; and no repository that hides in a folder of files.
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

-- Filters are programs that git runs on files as it compares them: those that are configured are switched off.
local function without_filters()
  local options = table.clone(OPTIONS)
  local ended = run(OPTIONS, { "config", "--name-only", "-z", "--get-regexp", "^filter\\." })
  local seen = {}
  for _, key in string.split(ended.stdout, "\0") do
    local name = string.match(key, "^filter%.(.*)%.[^.]*$")
    if name and not seen[name] then
      seen[name] = true
      if string.find(name, "=", 1, true) or ended.truncated then
        error(tool.failure("the repository has filters that cannot be switched off"))
      end
      for _, setting in { "clean=", "smudge=", "process=", "required=false" } do
        table.insert(options, "-c")
        table.insert(options, `filter.{name}.{setting}`)
      end
    end
  end
  return options
end

-- Returns what git printed, and whether that was cut.
return function(arguments)
  local ended = run(without_filters(), arguments)
  if not ended.ok then
    local said = trim(ended.stderr)
    if string.find(said, "not a git repository", 1, true) then
      said = "the project is in no git repository"
    end
    error(tool.failure(if said == "" then `git ended with code {ended.code}` else said))
  end
  return ended.stdout, ended.truncated
end
