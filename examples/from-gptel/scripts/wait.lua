-- :async t, so the callback comes first, as in Emacs.
return function(callback, seconds, note)
  task.delay(seconds, function()
    callback(note or "time is up")
  end)
end
