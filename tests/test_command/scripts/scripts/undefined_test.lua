test("later", function() end)
convert({})
