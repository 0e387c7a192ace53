-- expect: permission
-- deadline: 5000
-- says: :allow (:run ["sh"])
return function() return process.run({ "sh", "-c", "id" }) end
