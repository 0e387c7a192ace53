-- Runs once in every new state, before it is sealed: mends and bounds Luau's own libraries.
-- `host` holds the Rust functions it needs; it returns the guard.
local host = ...
local PENDING = host.pending
local caught, capture = host.caught, host.capture
local find_plain, split_plain, longest_class = host.find_plain, host.split_plain, host.longest_class

local pcall, xpcall, error, type, select = pcall, xpcall, error, type, select
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local pack, unpack = table.pack, table.unpack

-- A stop (deadline, memory, cancellation) passes through every pcall: `caught` raises it again.
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

-- A host function that waits yields PENDING to whoever polls the call. In a script's own coroutine that yield arrives
-- here instead, and is handed on until the engine is reached.
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

-- Luau searches plain text naively and without a safepoint: 20 MB for 10 MB takes days. Long needles go to a linear
-- search.
local NEEDLE = 64
local find, split = string.find, string.split

-- A class like [%w_] under * or + is tried along the whole text between two safepoints.
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

-- Comparing long strings takes a while and sorting by Luau's own order has no safepoint: a function in Lua has.
local sort = table.sort
local function less(one, other)
  return one < other
end
function table.sort(sorted, comparator)
  if comparator == nil then
    comparator = less
  end
  return sort(sorted, comparator)
end

-- A format of a megabyte keeps os.date busy for a second.
local date = os.date
function os.date(format, ...)
  if type(format) == "string" and #format > 200 then
    error("os.date: a format longer than 200 bytes", 2)
  end
  return date(format, ...)
end

-- table.move has no safepoint either, and moves nothing for as long as it is told.
local MOVE = 4e6
local move = table.move
function table.move(from, first, last, at, ...)
  if type(first) == "number" and type(last) == "number" and last - first > MOVE then
    error("table.move: more than 4 million elements at a time", 2)
  end
  return move(from, first, last, at, ...)
end

-- Out of memory is told by Luau's text alone, which no script may raise as its own: it would pass through its pcall.
_G.error = function(value, level)
  if value == "not enough memory" then
    value = "the script says: not enough memory"
  end
  error(value, if level == 0 then 0 else (tonumber(level) or 1) + 1)
end

-- The random numbers of a state go on from call to call; a call that chose where they begin has its state to itself.
local randomseed, spoil = math.randomseed, host.spoil
function math.randomseed(...)
  spoil()
  return randomseed(...)
end

_G.coroutine = safe_coroutine
_G.debug = { traceback = debug.traceback }
-- A module runs as a function of the script's own: it may wait and fail.
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

return function(called, ...)
  return xpcall(called, capture, ...)
end
