-- expect: ok
-- says: []
-- read: /
return function()
  local got = json.array({})
  for _, path in {
    "/proc/self/environ", "/proc/thread-self/environ", "/proc/1/environ", "/proc/self/mem", "/proc/self/maps", "/proc/self/cmdline",
    "/proc/self/fd/0", "/proc/self/root/etc/passwd", "/proc/self/cwd/Cargo.toml", "/proc/kmsg", "/proc/sys/kernel/random/uuid",
    "/proc/self/task/../environ", "/sys/kernel/uevent_seqnum", "/sys/power/state", "/dev/zero", "/dev/random", "/dev/stdin",
    "/dev/tty", "/dev/fd/0", "/dev/mem", "/dev/null",
  } do
    for name, use in { read = fs.read, lines = fs.lines } do
      if pcall(use, path) then table.insert(got, name .. " " .. path) end
    end
    if pcall(fs.read_bytes, path, { limit = 10 }) then table.insert(got, "read_bytes " .. path) end
  end
  return got
end
