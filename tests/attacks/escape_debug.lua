-- expect: ok
-- says: true
return function()
  return debug.info == nil and debug.getinfo == nil and debug.getupvalue == nil and debug.getregistry == nil
end
