-- expect: script
-- says: only http and https are spoken
return function() return http.get("file:///etc/passwd").body end
