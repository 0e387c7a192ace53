-- expect: script
-- says: the URL must not contain a user or password
return function() return http.get("http://api.example.org@127.0.0.1/").body end
