-- expect: ok
-- says: true
return function() return io == nil and os.execute == nil and os.getenv == nil and os.exit == nil and package == nil end
