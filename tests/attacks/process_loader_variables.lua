-- expect: ok
-- deadline: 5000
-- says: []
-- run: sh
return function()
  local got = json.array({})
  for _, name in { "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PATH", "BASH_ENV", "ENV", "IFS", "PYTHONPATH", "NODE_OPTIONS", "PERL5OPT", "BASH_FUNC_cd%%", "GIT_SSH_COMMAND", "GCONV_PATH", "PERLLIB", "_JAVA_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "CARGO_BUILD_RUSTC", "RUSTUP_TOOLCHAIN", "DOTNET_STARTUP_HOOKS", "HOME", "LANG", "", "A=B", "A\0B" } do
    if pcall(process.run, { "sh", "-c", "true" }, { env = { [name] = "/tmp/x" } }) then table.insert(got, name) end
  end
  return got
end
