-- Runs once in every new state, before the state is sealed: fixes Luau's own libraries and limits their run time.
-- `host` holds the Rust functions that this file needs. Returns the guard and the function that covers a table's
-- functions.
--
-- Luau checks for a stop when Lua code loops, calls or returns, but not while C code calls C code. A sort with a
-- comparator in C, or `..` with operands whose `__concat` is in C, cannot be stopped. Three rules limit its duration:
--   1. A function that takes a callback (`sort`, `find`, `foreach`, `foreachi`) calls Lua functions only.
--   2. A slow C function that an operator or `tostring` can call with a table as first argument is wrapped in a Lua
--      function (`cover`).
--   3. The run time of all other C functions is proportional to the memory that they read or write.
local host = ...
local PENDING = host.pending
local caught, capture = host.caught, host.capture
local find_plain, split_plain, longest_class = host.find_plain, host.split_plain, host.longest_class

local pcall, xpcall, error, type = pcall, xpcall, error, type
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local pack, unpack = table.pack, table.unpack
local next, rawget, rawequal, tonumber = next, rawget, rawequal, tonumber

-- pcall must not catch a stop (deadline, memory limit, cancellation): `caught` raises it again.
local function settled(ok, ...)
  if ok then
    return true, ...
  end
  return false, caught((...))
end

_G.pcall = function(...)
  return settled(pcall(...))
end

_G.xpcall = function(called, handler, ...)
  return settled(xpcall(called, function(raised)
    return handler(caught(raised))
  end, ...))
end

-- A host function that waits yields PENDING to the engine. In a script's own coroutine that yield arrives here instead
-- and is passed on until it reaches the engine.
local function await(co)
  local results
  repeat
    yield(PENDING)
    results = pack(resume(co))
  until not results[1] or results[2] ~= PENDING
  return settled(unpack(results, 1, results.n))
end

local function resumed(co, ok, ...)
  if ok and (...) == PENDING then
    return await(co)
  end
  return settled(ok, ...)
end

local function unwrapped(ok, ...)
  if ok then
    return ...
  end
  error((...), 0)
end

local safe_coroutine = table.clone(coroutine)
function safe_coroutine.resume(co, ...)
  return resumed(co, resume(co, ...))
end
function safe_coroutine.wrap(called)
  local co = create(called)
  return function(...)
    return unwrapped(resumed(co, resume(co, ...)))
  end
end

-- Luau's plain text search is quadratic and has no safepoint: a 10 MB pattern in a 20 MB text takes days. Long patterns
-- use a linear search instead.
local NEEDLE = 64
local find, split = string.find, string.split

-- A class such as [%w_] followed by * or + is matched along the whole text between two safepoints.
local HEAVY = 2e8
local function check_weight(text, pattern)
  if type(text) == "string" and type(pattern) == "string" and #text * #pattern > HEAVY then
    if #text * longest_class(pattern) > HEAVY then
      error("the pattern's classes are too long for a text of this length", 3)
    end
  end
end

local match, gmatch, gsub = string.match, string.gmatch, string.gsub
function string.match(text, pattern, ...)
  check_weight(text, pattern)
  return match(text, pattern, ...)
end
function string.gmatch(text, pattern)
  check_weight(text, pattern)
  return gmatch(text, pattern)
end
function string.gsub(text, pattern, ...)
  check_weight(text, pattern)
  return gsub(text, pattern, ...)
end

function string.find(text, pattern, init, plain)
  if type(pattern) == "string" and #pattern > NEEDLE and type(text) == "string" then
    local known, first, last = find_plain(text, pattern, init, plain)
    if known then
      return first, last
    end
  end
  if not plain then
    check_weight(text, pattern)
  end
  return find(text, pattern, init, plain)
end
function string.split(text, separator)
  if type(separator) == "string" and #separator > NEEDLE and type(text) == "string" then
    return split_plain(text, separator)
  end
  return split(text, separator)
end

-- Neither Luau's default comparison nor a comparator in C has a safepoint. A sort that `is_quick` needs none.
local sort, info = table.sort, debug.info
local function less(one, other)
  return one < other
end
function table.sort(sorted, comparator)
  if comparator == nil then
    if not host.is_quick(sorted) then
      comparator = less
    end
  elseif type(comparator) == "function" and info(comparator, "s") == "[C]" then
    local compare = comparator
    comparator = function(one, other)
      return compare(one, other)
    end
  end
  return sort(sorted, comparator)
end

function table.foreach(walked, called)
  for key, value in next, walked do
    local result = called(key, value)
    if result ~= nil then
      return result
    end
  end
  return nil
end
local getn = table.getn
function table.foreachi(walked, called)
  for index = 1, getn(walked) do
    local result = called(index, rawget(walked, index))
    if result ~= nil then
      return result
    end
  end
  return nil
end

-- The comparison of two tables may call `__eq`.
local find_value = table.find
function table.find(searched, wanted, init)
  if type(wanted) ~= "table" or type(searched) ~= "table" then
    return find_value(searched, wanted, init)
  end
  -- Raises an error for an invalid position.
  find_value({}, nil, init)
  local index = math.floor(tonumber(init) or 1)
  local value = rawget(searched, index)
  while value ~= nil do
    if value == wanted then
      return index
    end
    index += 1
    value = rawget(searched, index)
  end
  return nil
end

-- A format of a megabyte keeps os.date busy for a second.
local date = os.date
function os.date(format, ...)
  if type(format) == "string" and #format > 200 then
    error("os.date: a format longer than 200 bytes", 2)
  end
  return date(format, ...)
end

-- table.move visits every position of its range, even empty ones. It converts strings to numbers, and its conversion of
-- a number that is not a 32-bit integer is undefined. Two pieces have a safepoint between them.
local MOVE = 4e6
local PIECE = 1e5
local INTEGERS = 2 ^ 31
local move = table.move
function table.move(from, first, last, at, into)
  local low, high, to = tonumber(first), tonumber(last), tonumber(at)
  if not (low and high and to) then
    -- Raises an error that names the argument.
    return move(from, first, last, at, into)
  end
  low, high, to = math.modf(low), math.modf(high), (math.modf(to))
  for _, position in { low, high, to } do
    if not (position > -INTEGERS and position < INTEGERS) then
      error("table.move: a position is not an integer of 32 bits", 2)
    end
  end
  if high - low > MOVE then
    error("table.move: more than 4 million elements at a time", 2)
  end
  if high - low < PIECE then
    return move(from, low, high, to, into)
  end
  -- Raises an error for a value that is not a table.
  local target = move(from, 1, 0, 1, into)
  if to > high or to <= low or not rawequal(target, from) then
    for start = low, high, PIECE do
      move(from, start, math.min(start + PIECE - 1, high), to + (start - low), target)
    end
  else
    for stop = high, low, -PIECE do
      local start = math.max(stop - PIECE + 1, low)
      move(from, start, stop, to + (start - low), target)
    end
  end
  return target
end

-- Luau reports that memory is exhausted by this message only. A script must not raise it: pcall would not catch it.
_G.error = function(value, level)
  if value == "not enough memory" then
    value = "the script says: not enough memory"
  end
  error(value, if level == 0 then 0 else (tonumber(level) or 1) + 1)
end

-- The random number generator of a state continues from call to call. A state whose script seeds it is not reused.
local randomseed, mark_dirty = math.randomseed, host.mark_dirty
function math.randomseed(...)
  mark_dirty()
  return randomseed(...)
end

_G.coroutine = safe_coroutine
_G.debug = { traceback = debug.traceback }
-- A module runs as a function of the script: it may wait and fail.
local begin_module, finish_module = host.begin_module, host.finish_module
_G.require = function(wanted)
  local is_loaded, module, path = begin_module(wanted)
  if is_loaded then
    return module
  end
  return finish_module(path, (module()))
end
for _, name in { "loadstring", "getfenv", "setfenv", "newproxy", "collectgarbage" } do
  _G[name] = nil
end

-- C functions that are fast for all arguments.
local quick = {}
for _, called in { table.freeze, table.getn, table.insert, table.isfrozen, table.pack } do
  quick[called] = true
end

-- Wraps the C functions of `covered` in Lua functions, whose calls are safepoints.
local function cover(covered)
  for name, called in covered do
    if type(called) == "function" and not quick[called] and info(called, "s") == "[C]" then
      covered[name] = function(...)
        return called(...)
      end
    end
  end
end
cover(table)
_G.unpack = table.unpack

return function(called, ...)
  return xpcall(called, capture, ...)
end, cover
