-- expect: script
-- says: a user or password in a URL is refused
return function() return http.get("http://api.example.org@127.0.0.1/").body end
