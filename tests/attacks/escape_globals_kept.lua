-- expect: ok
-- says: nilnil
-- twice: true
local before = tostring(_G.kept) .. tostring(kept)
pcall(function() _G.kept = 1 end)
pcall(rawset, _G, "kept", 1)
kept = 1
return function() return before end
