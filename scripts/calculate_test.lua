local calculate = tool.load("calculate")

local function result(expression)
  return calculate({ expression = expression }).result
end

local function refusal(expression)
  return expect(function()
    result(expression)
  end).fails({ kind = "failure" }).message
end

test("operator precedence", function()
  expect(result("2 + 3 * 4")).is(14)
  expect(result("(2 + 3) * 4")).is(20)
  expect(result("2 ^ 3 ^ 2")).is(512)
  expect(result("-2 ^ 2")).is(-4)
  expect(result("2 ** -1")).is(0.5)
  expect(result("10 - 4 - 3")).is(3)
  expect(result("10 % 4 / 2")).is(1)
  expect(result("--3 - -2")).is(5)
end)

test("number formats", function()
  expect(result("1e3 + 1_000 + .5")).is(2000.5)
  expect(result(" 1.5E-1 ")).is(0.15)
end)

test("functions and constants", function()
  expect(result("sqrt(2) ^ 2")).near(2)
  expect(result("round(10 / 3, 2)")).is(3.33)
  expect(result("round(-2.5)")).is(-3)
  expect(result("max(1, 5, 3) - min(1, 5, 3)")).is(4)
  expect(result("sin(PI / 2) + ln(e)")).near(2)
  expect(result("log2(1024)")).near(10)
end)

test("errors contain the position", function()
  expect(refusal("(1 +")).is("expected a number, found the end of the expression")
  expect(refusal("1 2")).is('expected an operator, found "2" at character 3')
  expect(refusal("foo(1)")).is('unknown function "foo" (at character 1)')
  expect(refusal("1 + x")).is('unknown constant "x" (at character 5)')
  expect(refusal("sqrt(1, 2)")).is("sqrt takes 1 arguments, got 2")
  expect(refusal("sqrt()")).contains("expected a number")
  expect(refusal("1 / 0")).is("division by zero")
  expect(refusal("sqrt(-1)")).is("the result is not a real number")
  expect(refusal("10 ^ 1000")).is("the result is too large")
  expect(refusal(string.rep("(", 200) .. "1" .. string.rep(")", 200))).contains("nested deeper")
end)
