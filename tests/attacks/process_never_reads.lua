-- expect: ok
-- says: [0,""]
-- run: sh
-- deadline: 5000
return function()
  local run = process.run({ "sh", "-c", "exec <&-; exit 0" }, { stdin = string.rep("x", 4000000) })
  return { run.code, run.stdout }
end
