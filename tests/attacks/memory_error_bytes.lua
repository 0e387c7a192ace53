-- expect: script
return function() error(string.rep("\255", 8000000)) end
