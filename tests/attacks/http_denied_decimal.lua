-- expect: permission
-- says: :allow (:net ["127.0.0.1"])
return function() return http.get("http://2130706433/").body end
