-- expect: script
return function() error("\27[2J\27]0;owned\7 \u{202E}x") end
