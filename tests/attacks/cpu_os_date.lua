-- expect: script
-- says: 200 bytes
return function() return #os.date(string.rep("%c", 100000)) end
