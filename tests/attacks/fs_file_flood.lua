-- expect: script or timeout
-- write: box/
return function()
  for i = 1, 100000 do fs.mkdir("box/flood/" .. i .. "/x/y/z", { parents = true }) end
end
