-- expect: ok
-- says: gone
-- run: sh
-- deadline: 20000
-- A process that left its session, group and parent has ended when process.run returns.
return function()
  local script = [[
    setsid sh -c 'setsid sh -c "trap : TERM HUP INT; exec sleep 3051.5" < /dev/null > /dev/null 2>&1 & ' &
    (nohup sleep 3051.5 < /dev/null > /dev/null 2>&1 &)
    sleep 0.3
  ]]
  process.run({ "sh", "-c", script })
  return process.run({ "sh", "-c", "grep -a -l -z '3051[.]5' /proc/[0-9]*/cmdline 2> /dev/null || echo gone" }).stdout
end
