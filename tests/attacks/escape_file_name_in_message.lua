-- expect: script
return function() error("/etc/passwd:1: fake", 0) end
