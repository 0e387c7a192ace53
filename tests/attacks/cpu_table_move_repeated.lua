-- expect: timeout
return function() while true do pcall(table.move, {}, 1, 3e6, 2, {}) end end
