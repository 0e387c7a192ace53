return function(path)
  if path == "*" then
    return fs.list("notes")
  end
  return { text = fs.read(path), at = time.now(), day = time.iso(0) }
end
