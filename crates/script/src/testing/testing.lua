-- The test functions. Runs once in every new state that runs a test, before the state is sealed. `host` holds the Rust
-- functions that this file needs.
local host = ...
local guard, fail, misuse, show = host.guard, host.fail, host.misuse, host.show
local use_expectation, take_raised = host.use_expectation, host.take_raised

local rawequal, setmetatable, getmetatable, type, tostring, select =
  rawequal, setmetatable, getmetatable, type, tostring, select
local pack, unpack, insert, find = table.pack, table.unpack, table.insert, string.find
local abs, max = math.abs, math.max

-- Each check gets the value and the arguments of the matcher. It returns whether the check passed, the message if it
-- did not, the message if it passed but is negated, the result of the matcher, and whether the value has an invalid
-- type.
local checks = {}

function checks.equals(value, expected)
  local differences = host.differences(value, expected)
  return differences == nil, differences, function()
    return "expected anything but " .. show(expected)
  end
end

function checks.is(value, expected)
  return rawequal(value, expected), function()
    local note = ""
    if type(value) == "table" and type(expected) == "table" then
      note = " (a different table: use `equals` to compare contents)"
    end
    return "expected " .. show(expected) .. ", got " .. show(value) .. note
  end, function()
    return "expected anything but " .. show(expected)
  end
end

function checks.is_nil(value)
  return value == nil, function()
    return "expected nil, got " .. show(value)
  end, "expected a value, got nil"
end

function checks.contains(value, part)
  if type(value) ~= "table" and type(value) ~= "string" then
    return false, "expected something that contains " .. show(part) .. ", got " .. show(value), nil, nil, true
  end
  return host.contains(value, part), function()
    return "expected " .. show(part) .. " in " .. show(value)
  end, function()
    return "expected no " .. show(part) .. " in " .. show(value)
  end
end

function checks.matches(value, pattern)
  if type(pattern) ~= "string" then
    misuse("expect(…).matches: expected a Luau pattern, as in matches(\"^%d+$\")")
  end
  if type(value) ~= "string" then
    return false, "expected a string that matches " .. show(pattern) .. ", got " .. show(value), nil, nil, true
  end
  return find(value, pattern) ~= nil, function()
    return "expected a match of the pattern " .. show(pattern) .. ", got " .. show(value)
  end, function()
    return "expected no match of the pattern " .. show(pattern) .. ", got " .. show(value)
  end
end

function checks.near(value, number, tolerance)
  if type(number) ~= "number" or (tolerance ~= nil and type(tolerance) ~= "number") then
    misuse("expect(…).near: expected a number and a tolerance, as in near(21.5, 0.1)")
  end
  tolerance = tolerance or 1e-9 * max(1, abs(number))
  return type(value) == "number" and abs(value - number) <= tolerance, function()
    return "expected " .. show(number) .. " with a tolerance of " .. show(tolerance) .. ", got " .. show(value)
  end, function()
    return "expected a number more than " .. show(tolerance) .. " from " .. show(number) .. ", got " .. show(value)
  end
end

local function describe_error(raised)
  return raised.kind .. ": " .. raised.message
end

function checks.fails(value, wanted)
  if type(value) ~= "function" then
    misuse("expect(…).fails: expected a function, as in expect(function() weather({}) end).fails(), got " .. show(value))
  end
  local part, kind = wanted, nil
  if type(wanted) == "table" then
    part, kind = wanted.message, wanted.kind
  end
  if (part ~= nil and type(part) ~= "string") or (kind ~= nil and type(kind) ~= "string") then
    misuse("expect(…).fails: expected a part of the message or { kind = \"permission\", message = \"…\" }")
  end
  local results = pack(guard(value))
  if results[1] then
    return false, function()
      return "expected an error, but the function returned " .. show(results[2])
    end
  end
  local raised = take_raised()
  if kind ~= nil and kind ~= raised.kind then
    return false, "expected an error of kind " .. kind .. ", got " .. describe_error(raised), nil, raised
  end
  if part ~= nil and not find(raised.message, part, 1, true) then
    return false, "expected an error that contains " .. show(part) .. ", got " .. describe_error(raised), nil, raised
  end
  return true, nil, "expected no such error, got " .. describe_error(raised), raised
end

local NAMES = "equals, is, is_nil, contains, matches, near, fails, or never before one of them"

local function unknown(token, name)
  use_expectation(token)
  misuse("unknown matcher `" .. tostring(name) .. "`, expected one of " .. NAMES)
end

local function text_of(text)
  if type(text) == "function" then
    return text()
  end
  return text
end

local function expectation(value, token, is_negated)
  local matchers = {}
  for name, check in checks do
    matchers[name] = function(...)
      use_expectation(token)
      local given = pack(...)
      local first = 1
      -- Accepts expect(x):equals(y) as expect(x).equals(y).
      if given.n > 0 and rawequal(given[1], matchers) then
        first = 2
      end
      if name ~= "is_nil" and name ~= "fails" and given.n < first then
        misuse("expect(…)." .. name .. ": missing argument")
      end
      local passed, message, negated_message, result, is_invalid = check(value, unpack(given, first, given.n))
      -- A value of an invalid type fails the negated check too.
      if is_invalid or passed == is_negated then
        fail(text_of(if is_negated and not is_invalid then negated_message else message))
      end
      return result
    end
  end
  if not is_negated then
    matchers.never = expectation(value, token, true)
  end
  return setmetatable(matchers, {
    __index = function(_, name)
      unknown(token, name)
    end,
    __metatable = "expect",
  })
end

_G.expect = function(...)
  if select("#", ...) == 0 then
    misuse("expect: missing value, as in expect(result.count).equals(3)")
  end
  return expectation((...), host.new_expectation(), false)
end

_G.test = function(name, body)
  if type(name) ~= "string" or type(body) ~= "function" then
    misuse("test: expected a name and a function, as in test(\"finds Paris\", function() … end)")
  end
  host.register(name, function()
    body()
  end)
end

local answers = setmetatable({}, { __mode = "k" })
local mocked = {
  __call = function(self, ...)
    insert(self.calls, { ... })
    local answer = answers[self].answer
    if type(answer) == "function" then
      return answer(...)
    end
    return answer
  end,
}

_G.mock = function(answer)
  local self = setmetatable({ calls = {} }, mocked)
  answers[self] = { answer = answer }
  return self
end

local function plain(fake)
  if type(fake) ~= "table" then
    return fake
  end
  local functions = {}
  for name, called in fake do
    if type(called) == "table" and getmetatable(called) == mocked then
      functions[name] = function(...)
        return called(...)
      end
    else
      functions[name] = called
    end
  end
  return functions
end

local load = host.load
host.tool.load = function(name, options)
  if options == nil then
    return load(name, {})
  end
  if type(options) ~= "table" then
    misuse("tool.load: expected a tool name and a table, as in tool.load(\"get_weather\", { http = { get = mock() } })")
  end
  local prepared = {}
  for key, value in options do
    prepared[key] = if host.is_table(key) then plain(value) else value
  end
  return load(name, prepared)
end
