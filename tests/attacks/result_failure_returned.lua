-- expect: ok
-- says: message
return function() return tool.failure("x") end
