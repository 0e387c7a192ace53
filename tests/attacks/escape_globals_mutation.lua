-- expect: script
-- says: readonly
return function() _G.print = 1 end
