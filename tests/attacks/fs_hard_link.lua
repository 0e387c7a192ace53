-- expect: script
-- deadline: 5000
-- says: has other hard links
-- write: box/
return function()
  fs.rename("box/twin", "box/renamed")
  fs.rename("box/renamed", "box/twin")
  fs.append("box/twin", "x")
end
