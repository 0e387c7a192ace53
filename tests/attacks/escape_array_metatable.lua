-- expect: script
return function() getmetatable(json.array({})).__index = print end
