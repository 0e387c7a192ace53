local attempt = require("./lib/attempt")

-- Maximum length of each output in bytes: a model gets 64 KiB of a result.
local MOST = 25000

-- Keeps the end of a long output, which is more useful than the start.
local function tail(text)
  if #text <= MOST then
    return text, nil
  end
  local from = string.find(text, "\n", #text - MOST, true) or #text - MOST
  return string.sub(text, from + 1), true
end

return function(command, input, timeout_seconds)
  local timeout = timeout_seconds or 120
  local ended = attempt(process.run, command, { stdin = input, timeout = timeout, max_output = 8000000 })
  local stdout, is_cut = tail(ended.stdout)
  local stderr, is_cut_too = tail(ended.stderr)
  return {
    code = ended.code,
    signal = ended.signal,
    stdout = stdout,
    stderr = stderr,
    cut = is_cut or is_cut_too or (ended.truncated or nil),
  }
end
