-- %s is a string of Emacs Lisp: `json.encode` writes one, because its escapes mean the same there.
local CODE = "(progn (require 'json) (json-encode (documentation (intern %s) t)))"

return function(name)
  local run = process.run({ "emacsclient", "--eval", string.format(CODE, json.encode(name)) })
  if not run.ok then
    error(tool.failure(run.stderr))
  end
  -- Emacs prints the JSON as a string of Emacs Lisp.
  return json.decode(json.decode(run.stdout))
end
