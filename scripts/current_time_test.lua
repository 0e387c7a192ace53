-- The time is fixed: 2026-05-01 12:34:56 UTC, a Friday.
local current_time = tool.load("current_time", { time = { now = mock(1777638896.7) } })

test("UTC by default", function()
  expect(current_time({})).equals({
    date = "2026-05-01",
    time = "12:34:56",
    weekday = "Friday",
    week = 18,
    offset = "+00:00",
    zone = "UTC",
    unix = 1777638896,
  })
end)

test("the date depends on the zone", function()
  local there = current_time({ zone = "Pacific/Auckland" })
  expect(there).contains({ date = "2026-05-02", time = "00:34:56", offset = "+12:00", weekday = "Saturday" })
end)

test("an unknown zone is an error", function()
  expect(function()
    current_time({ zone = "Mars/Olympus" })
  end).fails({ kind = "failure", message = "Mars/Olympus" })
end)
