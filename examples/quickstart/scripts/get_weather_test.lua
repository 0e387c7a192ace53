-- Tests of get_weather: `deftool test` runs them after the examples of the spec.
local get_weather = tool.load("get_weather")

test("knows a city by its name, whatever follows it", function()
  expect(get_weather({ location = "Paris, France" })).equals({
    location = "Paris",
    temperature = 21,
    unit = "celsius",
  })
end)

test("converts where it is asked to", function()
  expect(get_weather({ location = "Oslo", unit = "fahrenheit" }).temperature).near(37.4)
end)

test("says so when it does not know a city", function()
  expect(get_weather({ location = "Atlantis" })).equals({ found = false })
end)

test("takes no unit but its own", function()
  expect(function()
    get_weather({ location = "Paris", unit = "kelvin" })
  end).fails({ kind = "invalid_arguments", message = "kelvin" })
end)
