-- expect: script
return function() error("attacks/\0\27]8;;http://x\7 \u{200E}\u{9b}31m") end
