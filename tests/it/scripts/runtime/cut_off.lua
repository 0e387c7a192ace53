--!strict
--[[ Plans a week: a bit of everything that Luau's grammar has. ]]
local DAYS = { "Mon", "Tue", [3] = 'Wed', ["late"] = "Sun" } :: any
type Plan = { day: string, hours: number?, [string]: any }

local function hours(from: number, to: number?): number
  return (to or 24) - from // 1 % 24 ^ 1
end

@native
local function plan<T...>(name: string, ...: T...): (Plan, number)
  local total, count = 0x1F + 0b101 + 1_000 + 1.5e-3, select("#", ...)
  for index, day in DAYS do
    if index == "late" then continue elseif total > 1e6 then break end
    total += #day * index
  end
  for i = 10, 1, -2 do total -= i end
  while total < 0 do total *= 2 end
  repeat total //= 2 until total < 100 or not (total ~= total)
  local text = `{name}: {if count > 0 then "more" else [==[no "more"]==]} \u{48}\x41\z
    {total}`
  return { day = text, hours = hours(1), ["k e y"] = { ... } }, total
end

return function(name)
  local made, total = plan(name or "nobody", 1, nil, true)
  local ok, why = pcall(function() error({ code = 1, message = "no" }) end)
  made.text, made.ok = "it's " .. tostring(total) .. "\n", not ok and why.code == 1
  made["k e y"] = nil
  return made
end
