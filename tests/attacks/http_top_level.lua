-- expect: load
-- says: while the script loads
http.get("http://127.0.0.1/")
return function() end
