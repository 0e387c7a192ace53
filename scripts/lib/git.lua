-- Runs git for the tools that only look: nothing it reads asks anybody anything, and what fails is told as git tells it.

-- Neither pagers, nor editors, nor locks, nor what a repository's configuration would run on the way.
local OPTIONS = {
  "git",
  "--no-pager",
  "--no-optional-locks",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "color.ui=false",
}

-- Returns what git printed, and whether that was cut.
return function(arguments)
  local argv = table.clone(OPTIONS)
  for _, argument in arguments do
    table.insert(argv, argument)
  end
  local ended = process.run(argv, { max_output = 200000 })
  if not ended.ok then
    local said = string.match(ended.stderr, "^%s*(.-)%s*$")
    if string.find(said, "not a git repository", 1, true) then
      said = "the project is in no git repository"
    end
    error(tool.failure(if said == "" then `git ended with code {ended.code}` else said))
  end
  return ended.stdout, ended.truncated
end
