-- expect: ok
-- says: LANG
-- run: sh
-- deadline: 5000
-- The canary is a variable that Cargo sets for this test.
return function()
  return process.run({ "sh", "-c", "env; cat /proc/self/environ; echo $CARGO_PKG_DESCRIPTION" }).stdout
end
