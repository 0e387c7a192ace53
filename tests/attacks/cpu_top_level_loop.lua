-- expect: timeout
-- The call's limit is shorter than the 250 ms of a top level.
while true do end
