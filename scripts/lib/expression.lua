-- Evaluates arithmetic expressions with a recursive descent parser.
--
--   sum     = product { ("+" | "-") product }
--   product = sign { ("*" | "/" | "%") sign }
--   sign    = { "+" | "-" } power
--   power   = item [ ("^" | "**") sign ]            -- right-associative, binds tighter than the sign: -2 ^ 2 is -4
--   item    = number | constant | name "(" sum { "," sum } ")" | "(" sum ")"

local MAX_DEPTH = 100

local CONSTANTS = { pi = math.pi, e = math.exp(1), tau = 2 * math.pi }

local function round(number, digits)
  local factor = 10 ^ (digits or 0)
  -- Rounds half away from zero.
  return math.round(number * factor) / factor
end

-- name → function, minimum and maximum number of arguments
local FUNCTIONS = {
  sqrt = { math.sqrt, 1, 1 },
  abs = { math.abs, 1, 1 },
  floor = { math.floor, 1, 1 },
  ceil = { math.ceil, 1, 1 },
  round = { round, 1, 2 },
  min = { math.min, 1, 100 },
  max = { math.max, 1, 100 },
  exp = { math.exp, 1, 1 },
  ln = { math.log, 1, 1 },
  log10 = { math.log10, 1, 1 },
  log2 = {
    function(number)
      return math.log(number, 2)
    end,
    1,
    1,
  },
  sin = { math.sin, 1, 1 },
  cos = { math.cos, 1, 1 },
  tan = { math.tan, 1, 1 },
  asin = { math.asin, 1, 1 },
  acos = { math.acos, 1, 1 },
  atan = { math.atan, 1, 1 },
}

local function refuse(message)
  error(tool.failure(message))
end

-- Evaluates the expression `text`. Errors contain the position.
return function(text)
  local at, depth = 1, 0
  local sum

  local function skip()
    at = string.match(text, "^%s*()", at)
  end

  -- Returns the token at the current position, for messages.
  local function here()
    local rest = string.match(text, "^[%w_.]+", at) or string.match(text, "^[^%s%w]", at)
    return if rest then `"{rest}" at character {at}` else "the end of the expression"
  end

  -- Consumes one of the operators; longer ones must come first.
  local function take(...)
    skip()
    for _, operator in { ... } do
      if string.sub(text, at, at + #operator - 1) == operator then
        at += #operator
        return operator
      end
    end
    return nil
  end

  local function expect(operator)
    if not take(operator) then
      refuse(`expected "{operator}", found {here()}`)
    end
  end

  local function call(name, start)
    local known = FUNCTIONS[name]
    if not known then
      refuse(`unknown function "{name}" (at character {start})`)
    end
    local arguments = { sum() }
    while take(",") do
      table.insert(arguments, sum())
    end
    expect(")")
    local count, fewest, most = #arguments, known[2], known[3]
    if count < fewest or count > most then
      local wanted = if fewest == most then tostring(fewest) else `{fewest} to {most}`
      refuse(`{name} takes {wanted} arguments, got {count}`)
    end
    return known[1](table.unpack(arguments))
  end

  local function item()
    skip()
    local number, after = string.match(text, "^(%d[%d_]*%.?%d*[eE][+-]?%d+)()", at)
    if not number then
      number, after = string.match(text, "^(%d[%d_]*%.?%d*)()", at)
    end
    if not number then
      number, after = string.match(text, "^(%.%d+)()", at)
    end
    if number then
      at = after
      return tonumber((string.gsub(number, "_", "")))
    end
    local name, behind = string.match(text, "^([%a][%w_]*)()", at)
    if name then
      local start = at
      at = behind
      name = string.lower(name)
      if take("(") then
        return call(name, start)
      end
      if CONSTANTS[name] == nil then
        refuse(`unknown constant "{name}" (at character {start})`)
      end
      return CONSTANTS[name]
    end
    if take("(") then
      local value = sum()
      expect(")")
      return value
    end
    return refuse(`expected a number, found {here()}`)
  end

  local function sign()
    local is_negative = false
    while true do
      local operator = take("-", "+")
      if not operator then
        break
      end
      is_negative = is_negative ~= (operator == "-")
    end
    local value = item()
    if take("**", "^") then
      value = value ^ sign()
    end
    return if is_negative then -value else value
  end

  local function product()
    local value = sign()
    while true do
      local operator = take("*", "/", "%")
      if not operator then
        return value
      end
      local by = sign()
      if operator == "*" then
        value *= by
      elseif by == 0 then
        refuse("division by zero")
      elseif operator == "/" then
        value /= by
      else
        value %= by
      end
    end
  end

  sum = function()
    depth += 1
    if depth > MAX_DEPTH then
      refuse(`parentheses are nested deeper than {MAX_DEPTH} levels`)
    end
    local value = product()
    while true do
      local operator = take("+", "-")
      if not operator then
        depth -= 1
        return value
      end
      local other = product()
      value = if operator == "+" then value + other else value - other
    end
  end

  local value = sum()
  skip()
  if at <= #text then
    refuse(`expected an operator, found {here()}`)
  end
  if value ~= value then
    refuse("the result is not a real number")
  end
  if math.abs(value) == math.huge then
    refuse("the result is too large")
  end
  return value
end
