-- expect: ok
-- says: true
-- twice: true
return function()
  local co = coroutine.running()
  local ok = pcall(coroutine.close, co)
  local also = pcall(coroutine.resume, co)
  return (ok == true or ok == false) and (also == true or also == false)
end
