test("unfinished", function(
