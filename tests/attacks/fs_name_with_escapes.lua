-- expect: script
-- says: esc
-- read: box/
return function()
  local found = fs.glob("box/esc*")
  assert(fs.read(found[1]) == "inside")
  fs.read(found[1] .. "\27]0;owned\7\u{202e}")
end
