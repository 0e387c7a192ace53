-- expect: script
-- says: U+000D
return function() return http.get("http://127.0.0.1/\r\nx-evil: \27[31m1").body end
