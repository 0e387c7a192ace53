-- expect: ok
-- says: 1
-- twice: true
local kept = {}
return function() kept[#kept + 1] = 1 return #kept end
