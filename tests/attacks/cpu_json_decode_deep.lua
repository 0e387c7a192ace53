-- expect: script
-- says: recursion
return function() return json.decode(string.rep("[", 20000)) end
