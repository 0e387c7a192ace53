-- expect: permission
-- says: :allow (:net ["169.254.169.254"])
return function() return http.get("http://169.254.169.254/latest/meta-data/").body end
