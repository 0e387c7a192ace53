-- `process`: only granted programs run. The tool `programs` passes its `process` to the test.

local function with(programs, body)
  tool.load('programs', { root = temp_dir(), grants = { run = programs }, http = { get = body } })({})
end

test('a granted program runs', function()
  with({ 'sh', 'cat', 'printf' }, function(process)
    local function sh(command, options)
      return process.run({ 'sh', '-c', command }, options)
    end
    expect(sh('echo out; echo err >&2; exit 3')).equals({
      ok = false, code = 3, timed_out = false, truncated = false, stdout = 'out\n', stderr = 'err\n',
    })
    expect(process.run({ 'cat' }, { stdin = 'given\n' }).stdout).is('given\n')
    expect(process.run({ 'cat' }).stdout).is('')
    expect(process.run({ 'printf', '%s|', '$HOME', '*', 'a b', ';id', '' }).stdout).is('$HOME|*|a b|;id||')
    expect(sh('kill -TERM $$').signal).is(15)
    expect(sh('kill -TERM $$').code).is(nil)
    expect(sh('echo $0').stdout).is('sh\n')
    local run
    -- On a busy machine the program may not have started by then.
    for _, limit in { 0.3, 3, 12 } do
      run = sh('echo begun; sleep 60', { timeout = limit })
      if run.stdout ~= '' then
        break
      end
    end
    expect({ run.timed_out, run.ok, run.signal, run.stdout }).equals({ true, false, 9, 'begun\n' })
    run = process.run({ 'printf', 'abcdef' }, { max_output = 3 })
    expect({ run.ok, run.stdout, run.truncated }).equals({ true, 'abc', true })
    run = sh('cat /dev/zero | head -c 3000000')
    expect({ #run.stdout, run.truncated, run.ok }).equals({ 1048576, true, true })
  end)
end)

test('programs without a grant are refused', function()
  with({ 'sh' }, function(process)
    process.run({ 'sh', '-c', 'ln -s / out' })
  end)
  with({ 'printf', 'sub/tool' }, function(process)
    local function refused(message, argv, options)
      expect(function()
        process.run(argv, options)
      end).fails({ kind = 'permission', message = message })
    end
    refused('this tool may only run "printf" "sub/tool"; to allow it, add :allow (:run ["curl"])', { 'curl', 'http://x' })
    refused(':allow (:run ["/usr/bin/printf"])', { '/usr/bin/printf', 'x' })
    refused(':allow (:run ["./printf"])', { './printf', 'x' })
    refused(':allow (:run ["printf x"])', { 'printf x' })
    refused('a\u{FFFD}[31m is not allowed', { 'a\27[31m' })
    refused(
      'LD_PRELOAD is not allowed: this tool may not set variables of programs; to allow it, add :allow (:env ["LD_PRELOAD"])',
      { 'printf' },
      { env = { LD_PRELOAD = 'x.so' } }
    )
    refused('PATH is not allowed', { 'printf' }, { env = { PATH = '.' } })
    -- Names that no list of dangerous variables contained.
    refused('CARGO_BUILD_RUSTC is not allowed', { 'printf' }, { env = { CARGO_BUILD_RUSTC = 'x' } })
    refused('LANG is not allowed', { 'printf' }, { env = { LANG = 'C' } })
    refused(
      'cwd / is not allowed: it is outside of the project and of all granted folders; to allow it, add :allow (:read ["/"])',
      { 'printf' },
      { cwd = '/' }
    )
    refused('cwd .. is not allowed', { 'printf' }, { cwd = '..' })
    refused('cwd out is not allowed', { 'printf' }, { cwd = 'out' })
  end)
  with({}, function(process)
    expect(function()
      process.run({ 'sh' })
    end).fails({ kind = 'permission', message = 'this tool may not run programs' })
  end)
end)

test('invalid arguments are errors', function()
  with({ 'printf', 'sub/tool', 'no-such-program' }, function(process)
    local function invalid(message, argv, options)
      expect(function()
        process.run(argv, options)
      end).fails({ kind = 'script', message = message })
    end
    invalid('expected the program and its arguments, as in { "git", "status" }, got string', 'printf x')
    invalid('the list of program and arguments is empty', {})
    invalid('expected argv[2] to be a string', { 'printf', 1 })
    invalid('argv[2]: the string contains a NUL character', { 'printf', 'a\0b' })
    invalid('argv[2]: the string is not UTF-8', { 'printf', '\255' })
    invalid('invalid variable name', { 'printf' }, { env = { ['a=b'] = 'c' } })
    invalid('expected env.A to be a string', { 'printf' }, { env = { A = 1 } })
    invalid('expected stdin to be a string', { 'printf' }, { stdin = 5 })
    invalid('expected timeout to be a positive number of seconds, got 0', { 'printf' }, { timeout = 0 })
    invalid('unknown option `shell`', { 'printf' }, { shell = true })
    invalid('cwd absent: No such file or directory', { 'printf' }, { cwd = 'absent' })
    invalid('program sub/tool not found', { 'sub/tool' })
    invalid('program no-such-program not found in PATH', { 'no-such-program' })
    invalid('more than 1024 KiB of arguments', { 'printf', string.rep('x', 2000000) })
  end)
end)
