-- expect: ok
-- says: false
-- twice: true
return function()
  local first = math.random(1, 1000000000)
  math.randomseed(7)
  return first == math.random(1, 1000000000)
end
