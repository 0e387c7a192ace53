local function stock_level(answer)
  return tool.load("stock_level", { http = { get = mock(answer) } })({ part = "A17" })
end

test("returns the number of pieces", function()
  expect(stock_level({ status = 200, body = '{"pieces": 3}' })).equals(3)
end)

test("fails for an unknown part", function()
  expect(function()
    stock_level({ status = 404, body = "" })
  end).fails("there is no part A17")
end)
