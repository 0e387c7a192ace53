-- expect: script
-- says: without calling
-- async: true
-- within: 150
return function(done) end
