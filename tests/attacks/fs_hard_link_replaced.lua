-- expect: ok
-- says: new
-- read: box/twin
-- write: box/twin
return function()
  fs.write("box/twin", "new")
  fs.append("box/twin", "er")
  return fs.read("box/twin")
end
