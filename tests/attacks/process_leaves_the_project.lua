-- expect: permission
-- says: cwd box/link_dir/../../.. is not allowed
-- run: sh
-- read: box/a.txt
return function() return process.run({ "sh", "-c", "pwd" }, { cwd = "box/link_dir/../../.." }) end
