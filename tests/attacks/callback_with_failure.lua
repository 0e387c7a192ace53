-- expect: failure
-- says: x
-- async: true
return function(callback) callback(tool.failure("x")) end
