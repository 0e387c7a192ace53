-- expect: script or ok
-- deadline: 5000
-- read: box/
-- A read that completes immediately does not wait.
return function()
  table.sort({ 1, 2, 3 }, function() return fs.exists("box/a.txt") end)
end
