-- Tests of get_weather: `deftool test` runs them after the examples of the spec.
local get_weather = tool.load("get_weather")

test("ignores the text after a comma", function()
  expect(get_weather({ location = "Paris, France" })).equals({
    location = "Paris",
    temperature = 21,
    unit = "celsius",
  })
end)

test("converts to the requested unit", function()
  expect(get_weather({ location = "Oslo", unit = "fahrenheit" }).temperature).near(37.4)
end)

test("returns found = false for an unknown city", function()
  expect(get_weather({ location = "Atlantis" })).equals({ found = false })
end)

test("rejects an unknown unit", function()
  expect(function()
    get_weather({ location = "Paris", unit = "kelvin" })
  end).fails({ kind = "invalid_arguments", message = "kelvin" })
end)
