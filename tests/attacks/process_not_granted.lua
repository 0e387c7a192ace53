-- expect: permission
-- says: :allow (:run ["sh"])
return function() return process.run({ "sh", "-c", "id" }) end
