-- `fs`: access is limited to the granted paths. The tool `files` passes its `fs` to the test.

local function with(grants, body)
  tool.load('files', { root = temp_dir(), grants = grants, http = { get = body } })({})
end

local function fails(message, call)
  local ok, problem = pcall(call)
  expect(ok).is(false)
  expect(tostring(problem)).contains(message)
  expect(tostring(problem)).never.contains('os error')
end

local function denied(message, call)
  expect(call).fails({ kind = 'permission', message = message })
end

local function all(...)
  return { ... }
end

local function names(fs)
  local found = {}
  for _, entry in fs.list('.') do
    table.insert(found, entry.name)
  end
  return found
end

test('a file is read in pages', function()
  local mib, many = 1024 * 1024, {}
  for line = 1, 3000 do
    many[line] = 'line ' .. line
  end
  temp.write('a.txt', 'one\r\ntwo\n\nfour')
  temp.write('many', table.concat(many, '\n'))
  temp.write('empty', '')
  with({ read = { '.' }, write = { 'long' } }, function(fs)
    fs.write('long', string.rep('x', 8 * mib))
    fs.append('long', string.rep('x', mib))
    expect(all(fs.lines('a.txt'))).equals({ { 'one', 'two', '', 'four' }, false })
    expect(all(fs.lines('a.txt', { from = 2, count = 1 }))).equals({ { 'two' }, true })
    expect(all(fs.lines('a.txt', { from = 5 }))).equals({ {}, false })
    expect(all(fs.lines('empty'))).equals({ {}, false })
    expect(all(fs.lines('many', { from = 2999, count = 2 }))).equals({ { 'line 2999', 'line 3000' }, false })
    local lines, more = fs.lines('many')
    expect({ #lines, more }).equals({ 1000, true })
    expect(fs.read_bytes('a.txt', { offset = 1, limit = 3 })).is('ne\r')
    expect(fs.read_bytes('a.txt', { offset = 99 })).is('')
    expect(#fs.read_bytes('long', { offset = 5, limit = 8 * mib })).is(8 * mib)
    expect(#fs.read_bytes('long', { offset = mib })).is(8 * mib)
    expect(fs.read('empty')).is('')
    fails('longer than 8 MiB; use fs.lines or fs.read_bytes to read a part', function() fs.read('long') end)
    fails('more than 8 MiB in line 1; read it with fs.read_bytes', function() fs.lines('long') end)
    fails('more than 8 MiB; set limit to read a part', function() fs.read_bytes('long') end)
    fails('unknown option `form`, expected one of `from`, `count`', function() fs.lines('a.txt', { form = 1 }) end)
    fails('expected from to be a whole number from 1 to', function() fs.lines('a.txt', { from = 0 }) end)
    fails('to 9007199254740992, got 1.5', function() fs.lines('a.txt', { from = 1.5 }) end)
    fails('from 1 to 9007199254740992, got string', function() fs.lines('a.txt', { from = 'x' }) end)
    fails('expected a table of options', function() fs.lines('a.txt', 5) end)
    fails('expected a string, got table', function() fs.read({}) end)
    fails('the path is longer than 4096 bytes', function() fs.read(string.rep('a/', 5000)) end)
    fails('a\u{FFFD}b: ', function() fs.read('a\0b') end)
  end)
end)

test('a grant may contain two dots', function()
  for _, name in { 'top.txt', 'other/x', 'other/deep/y', 'beside/z', 'project/secret.txt', 'project/notes/n' } do
    temp.write(name, name)
  end
  local function within(grants, body)
    local root = temp_dir() .. '/project'
    tool.load('files', { root = root, grants = { read = grants, write = {} }, http = { get = body } })({})
  end
  local function reads(path, expected, ...)
    within({ ... }, function(fs) expect(fs.read(path)).is(expected) end)
  end
  reads('../other/x', 'other/x', '../other/')
  reads('./notes/../../other//deep/y', 'other/deep/y', '../other/')
  reads('../other/deep/../x', 'other/x', '../other/')
  reads('../other/x', 'other/x', '../other/x')
  reads('../other/x', 'other/x', 'notes/../../other')
  reads('../top.txt', 'top.txt', '..')
  reads('../other/x', 'other/x', '../')
  reads('notes/../secret.txt', 'project/secret.txt', '.')
  reads('secret.txt', 'project/secret.txt', 'notes/..')
  reads(temp_dir() .. '/project/notes/../../other/x', 'other/x', '../other/')
  local function refuses(path, message, ...)
    within({ ... }, function(fs) denied(message, function() fs.read(path) end) end)
  end
  refuses('notes/../secret.txt', ':allow (:read ["secret.txt"])', 'notes/')
  reads('notes/../secret.txt', 'project/secret.txt', 'notes/', 'secret.txt')
  refuses('../other/../beside/z', ':allow (:read ["../beside/z"])', '../other/')
  reads('../other/../beside/z', 'beside/z', '../other/', '../beside/z')
  refuses('../other/x', ':allow (:read ["../other/x"])', '.')
  reads('../other/x', 'other/x', '.', '../other/x')
  refuses('../../x', ':allow (:read [', '..')
  refuses('', ':allow (:read ["."])', 'notes/')
  refuses('a"b\\c', [[:allow (:read ["a\"b\\c"])]], 'notes/')
end)

test('writes are atomic and limited to granted paths', function()
  temp.write('notes/a', 'a')
  temp.write('out/old.txt', 'old')
  with({ read = { 'notes/' }, write = { 'out/', 'report.md' } }, function(fs)
    fs.write('out/new.txt', 'new')
    fs.write('out/old.txt', 'changed')
    fs.append('out/old.txt', '!')
    fs.append('out/log', '1')
    fs.append('out/log', '2')
    fs.write('report.md', '# 1')
    fs.write('report.md', '# 2\0\255')
    fs.write('out/a/b/c', 'deep', { parents = true })
    expect(temp.read('out/new.txt')).is('new')
    expect(temp.read('out/old.txt')).is('changed!')
    expect(temp.read('out/log')).is('12')
    expect(temp.read('report.md')).is('# 2\0\255')
    expect(temp.read('out/a/b/c')).is('deep')
    -- No temporary file is left. A write grant allows listing and `stat`, but not reading.
    expect(temp.list()).equals({ 'notes/a', 'out/a/b/c', 'out/log', 'out/new.txt', 'out/old.txt', 'report.md' })
    expect(fs.stat('out/log').size).is(2)
    expect({ #fs.list('out'), #fs.glob('out/**') }).equals({ 4, 4 })
    denied('this tool may only write it; to allow it, add :allow (:read ["out/log"])', function() fs.read('out/log') end)
    denied('this tool may only read it; to allow it, add :allow (:write ["notes/a"])', function() fs.write('notes/a', '') end)
    denied('this tool may only write "out/" "report.md"; to allow it, add :allow (:write ["elsewhere"])', function()
      fs.write('elsewhere', '')
    end)
    denied(':allow (:write ["notes/a"])', function() fs.append('out/../notes/a', '') end)
    denied(':allow (:write ["made"])', function() fs.mkdir('made') end)
    denied(':allow (:write ["notes/a"])', function() fs.remove('notes/a') end)
    denied(':allow (:write ["notes/log"])', function() fs.rename('out/log', 'notes/log') end)
    denied(':allow (:write ["notes/a"])', function() fs.rename('notes/a', 'out/a2') end)
    denied('this tool may only access "notes/" "out/" "report.md"', function() fs.stat('elsewhere') end)
    fails('fs.write: out/x/y: No such file or directory', function() fs.write('out/x/y', '') end)
    fails('is the granted folder itself', function() fs.write('out', '') end)
    fails('is not a regular file', function() fs.write('out/a', '') end)
    fails('is not a regular file', function() fs.append('out/a/b', '') end)
    fails('Not a directory', function() fs.write('out/new.txt/x', '') end)
    fails('unknown option `parent`', function() fs.write('out/y', '', { parent = true }) end)
    fails('expected a string, got nothing', function() fs.write('out/y') end)
    expect(temp.read('notes/a')).is('a')
  end)
end)

-- `parents = true` also creates a missing granted folder.
for made, create in
  {
    ['deep/out'] = function(fs) fs.mkdir('deep/out', { parents = true }) end,
    ['deep/out/a/b'] = function(fs) fs.write('deep/out/a/b', 'x', { parents = true }) end,
    ['deep/out/b'] = function(fs) fs.append('deep/out/b', 'x', { parents = true }) end,
    ['one/file'] = function(fs) fs.write('one/file', 'x', { parents = true }) end,
  }
do
  test('a missing granted folder can be created: ' .. made, function()
    temp.write('here', '')
    with({ read = {}, write = { 'deep/out/', 'one/file' } }, function(fs)
      expect(fs.exists('deep/out/a')).is(false)
      expect(fs.glob('deep/out/*')).equals({})
      fails('No such file or directory', function() fs.list('deep/out') end)
      fails('No such file or directory', function() fs.mkdir('deep/out') end)
      fails('No such file or directory', function() fs.write('deep/out/a', '') end)
      create(fs)
      expect(fs.exists(made)).is(true)
    end)
  end)
end

test('folders are created, removed and renamed', function()
  temp.write('a/b/c', 'c')
  temp.write('d', 'd')
  temp.write('kept/notes/n', 'n')
  with({ read = { 'kept/notes/' }, write = { '.' } }, function(fs)
    fs.mkdir('new')
    fs.mkdir('new/x/y', { parents = true })
    fs.mkdir('new', { parents = true })
    expect(fs.stat('new/x/y').kind).is('directory')
    fails('already exists', function() fs.mkdir('new') end)
    fails('already exists and is not a folder', function() fs.mkdir('d') end)
    fails('Not a directory', function() fs.mkdir('d/e', { parents = true }) end)
    fails('is not empty; pass recursive = true', function() fs.remove('a') end)
    fails('No such file or directory', function() fs.remove('absent') end)
    fails('is the granted folder itself', function() fs.remove('.', { recursive = true }) end)
    fails('already exists and is not a regular file', function() fs.rename('d', 'a') end)
    fails('absent: No such file', function() fs.rename('absent', 'x') end)
    fails('is a granted path or contains one', function() fs.rename('a', 'kept/notes') end)
    fails('kept is a granted path or contains one', function() fs.rename('kept', 'other') end)
    fails('Invalid argument', function() fs.rename('a', 'a/b/inner') end)
    fs.rename('d', 'new/e')
    fs.rename('a/b', 'moved')
    fs.write('f', '')
    fs.rename('f', 'new/e')
    expect(names(fs)).equals({ 'a', 'kept', 'moved', 'new' })
    expect(temp.read('new/e')).is('')
    fs.remove('a')
    fs.remove('new', { recursive = true })
    fs.remove('moved/c')
    expect(names(fs)).equals({ 'kept', 'moved' })
  end)
end)

test('files are found by pattern', function()
  temp.write('.gitignore', 'target/\n*.log\n!keep.log\n/only_top\n')
  temp.write('src/.gitignore', 'generated.rs\n')
  temp.write('src/.ignore', 'ignored.rs\n')
  for _, name in
    {
      'src/a.rs', 'src/a/b.rs', 'src/a/deep/c.rs', 'src/a/only_top', 'src/x.log', 'src/keep.log', 'src/generated.rs',
      'src/ignored.rs', 'src/.hidden.rs', 'target/t.rs', '.git/config', '.github/ci.yml', 'only_top', 'é[1].txt',
    }
  do
    temp.write(name, '')
  end
  with({ read = { '.', '.github', 'src/.hidden.rs' }, write = {} }, function(fs)
    local function found(paths, more, ...)
      expect(all(fs.glob(...))).equals({ paths, more })
    end
    local rust = { 'src/a.rs', 'src/generated.rs', 'src/ignored.rs' }
    found(rust, false, 'src/*.rs')
    found(rust, false, '*.rs', { root = 'src' })
    found({ 'src/a.rs', 'src/a/b.rs', 'src/a/deep/c.rs' }, false, 'src/**/*.rs', { gitignore = true })
    found({ 'src/a/b.rs', 'src/a/deep/c.rs', 'src/a/only_top' }, false, '**', { gitignore = true, root = 'src/a' })
    found({ '.github/ci.yml', 'src/keep.log' }, false, '**/*.{log,yml}', { gitignore = true, hidden = true })
    found({ 'src/a.rs', 'src/a/b.rs' }, true, '**/*.rs', { limit = 2 })
    found({ 'src/a.rs', 'src/generated.rs', 'src/ignored.rs', 'target/t.rs' }, false, '**/*.rs', { depth = 2, root = './' })
    found({ 'src', 'src/a', 'src/a/deep', 'target' }, false, '**', { kind = 'directory' })
    found({ '.github/ci.yml' }, false, '.github/*')
    found({ 'src/.hidden.rs' }, false, 'src/.*.rs')
    found({ 'é[1].txt' }, false, 'é[[]1[]].txt')
    found({ 'src/a.rs' }, false, 'src/a.rs')
    found({}, false, 'absent/**')
    found({}, false, 'only_*', { gitignore = true })
    fails('invalid pattern a{b: ', function() fs.glob('a{b') end)
    fails('absent', function() fs.glob('*', { root = 'absent' }) end)
    fails('kind to be "file", "directory" or "any"', function() fs.glob('*', { kind = 'socket' }) end)
    fails('the pattern is longer than 1000 bytes', function() fs.glob(string.rep('*', 1001)) end)
    fails(':allow (:read [".."])', function() fs.glob('../**') end)
    fails(':allow (:read ["/etc"])', function() fs.glob('/etc/*') end)
  end)
end)

test('writes of a call are limited', function()
  with({ read = {}, write = { '.' } }, function(fs)
    local mib = string.rep('x', 1048576)
    fails('a call may write at most 64 MiB', function()
      for _ = 1, 65 do
        fs.write('a', mib)
      end
    end)
  end)
  -- A new call starts at zero.
  with({ read = {}, write = { '.' } }, function(fs)
    fs.write('a', 'x')
    expect(fs.stat('a').size).is(1)
  end)
end)
