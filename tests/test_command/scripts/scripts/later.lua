return function(callback, number)
  if number < 0 then
    return
  end
  task.delay(0.005, function()
    log.info("counted", number)
    callback({ number = number + 1 })
  end)
end
