-- expect: memory or script
return function() return #table.create(60000000, 1) end
