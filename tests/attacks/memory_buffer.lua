-- expect: memory or script
return function() return buffer.create(1000000000) end
