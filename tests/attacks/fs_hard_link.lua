-- expect: script
-- says: has other names
-- write: box/
return function()
  fs.rename("box/twin", "box/renamed")
  fs.rename("box/renamed", "box/twin")
  fs.append("box/twin", "x")
end
