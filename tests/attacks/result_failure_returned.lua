-- expect: failure
-- says: x
return function() return tool.failure("x") end
