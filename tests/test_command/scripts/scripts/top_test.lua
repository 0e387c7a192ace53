local function fail() error("at the top") end
fail()
