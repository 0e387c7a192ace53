-- expect: timeout
-- The time limit of the call is shorter than the 250 ms of a top level.
while true do end
