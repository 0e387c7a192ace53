return function(zone)
  zone = zone or "UTC"
  local now = time.now()
  local known, date = pcall(time.format, "%Y-%m-%d", now, zone)
  if not known then
    error(tool.failure(`unknown time zone "{zone}"; use an IANA name such as Europe/Paris`))
  end
  return {
    date = date,
    time = time.format("%H:%M:%S", now, zone),
    weekday = time.format("%A", now, zone),
    week = tonumber(time.format("%V", now, zone)),
    offset = time.format("%:z", now, zone),
    zone = zone,
    unix = math.floor(now),
  }
end
