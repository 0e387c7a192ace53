-- expect: script
return function() table.freeze(_G.string) string.sub = nil end
