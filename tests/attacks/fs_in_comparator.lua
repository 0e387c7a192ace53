-- expect: script or ok
-- read: box/
-- a read that is done at once need not wait
return function()
  table.sort({ 1, 2, 3 }, function() return fs.exists("box/a.txt") end)
end
