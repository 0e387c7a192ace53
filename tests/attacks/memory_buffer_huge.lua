-- expect: script or memory
return function() return buffer.len(buffer.create(2 ^ 30)) end
