-- expect: ok
-- says: 1
-- async: true
return function(done) done(1) local t = {} while true do t[#t + 1] = {} end end
