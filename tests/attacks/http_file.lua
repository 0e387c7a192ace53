-- expect: script
-- says: unsupported scheme `file`, expected http or https
return function() return http.get("file:///etc/passwd").body end
