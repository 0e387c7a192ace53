-- `http`: invalid requests, and hosts without a grant. Nothing is sent: no server is running. The tool `requests` passes
-- its `http` to the test.

local url = 'http://127.0.0.1:9'

local function with(hosts, body)
  tool.load('requests', { grants = { net = hosts }, env = { get = body } })({})
end

test('an invalid request is an error', function()
  with({ '127.0.0.1:*' }, function(http)
    local function invalid(expected, call)
      local ok, problem = pcall(call)
      expect(ok).is(false)
      expect(tostring(problem)).contains(expected)
      expect(string.find(tostring(problem), '%c')).is(nil)
    end
    local function get(expected, options)
      invalid(expected, function() http.get(url, options) end)
    end
    local function request(expected, options)
      invalid(expected, function() http.request(options) end)
    end
    local function post(expected, body, options)
      invalid(expected, function() http.post(url, body, options) end)
    end
    invalid('http.get: expected a URL, as a string, got nothing', function() http.get() end)
    invalid('expected a URL, as a string, got number', function() http.get(7) end)
    get('expected a table of options, got string', 'x')
    request('http.request: expected a table of options, got string', url)
    invalid('http.request: expected a URL, as a string, got nothing', function() http.request() end)
    request('expected a URL', {})
    get('unknown option `method`, expected one of `query`, `headers`, `timeout`, `max_bytes`, `redirects`', { method = 'POST' })
    get('unknown option `Query`', { Query = {} })
    get('unknown option `1`', { 'a' })
    get('unknown option `body`', { body = 'x' })
    post('a table is sent with json', { a = 1 })
    post('expected only one of body, json and form', 'x', { json = 1 })
    request('expected only one of body, json and form', { url = url, form = {}, json = 1 })
    post('cannot encode json: function', nil, { json = print })
    post('cannot encode json.a: NaN', nil, { json = { a = 0 / 0 } })
    get('query.a to be a string, number, boolean or an array of them, got function', { query = { a = print } })
    get('got json.null', { query = { a = json.null } })
    get('query contains a string that is not UTF-8', { query = { a = '\255' } })
    get('query has more than', { query = { a = string.rep('x', 20000) } })
    get('expected timeout to be a positive number of seconds, got 0', { timeout = 0 })
    get('got NaN', { timeout = 0 / 0 })
    get('got -inf', { timeout = -1 / 0 })
    get('got string', { timeout = '5' })
    get('got string', { max_bytes = '5' })
    get('max_bytes to be a whole number from 1 to 33554432, got 1099511627776', { max_bytes = 2 ^ 40 })
    get('got 1.5', { max_bytes = 1.5 })
    get('from 0 to 20, got -1', { redirects = -1 })
    invalid('the URL is not UTF-8', function() http.get(url .. '/\255') end)
    -- Attempts to smuggle a header or a request.
    invalid('U+000D', function() http.get(url .. '/\r\nX-Evil: 1') end)
    invalid('a space', function() http.get(url .. '/ HTTP/1.1\r\n\r\nGET /') end)
    get('the value of header x contains a line end', { headers = { x = 'a\r\nx-evil: 1' } })
    get('contains a line end', { headers = { x = 'a\nb' } })
    get('contains a line end', { headers = { x = 'a\0b' } })
    get('invalid header name', { headers = { ['x: y\r\nz'] = 'a' } })
    get('invalid header name', { headers = { ['x y'] = 'a' } })
    get('invalid header name', { headers = { [''] = 'a' } })
    get('headers["y"] to be a string, got boolean', { headers = { x = {}, y = true } })
    request('expected method to be a word', { url = url, method = 'GET / HTTP/1.1\r\nx: y' })
    request('expected method to be a word', { url = url, method = '' })
    request('expected method to be a word', { url = url, method = 'CONNECT' })
    request('expected method to be a word', { url = url, method = 'trace' })
    post('longer than 32 MiB', string.rep('x', 33554433))
    for _, header in
      {
        'Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'Proxy-Authorization', 'proxy-x', 'TE',
        'Expect', 'Keep-Alive', 'Trailer',
      }
    do
      get('is set automatically', { headers = { [header] = 'x' } })
    end
    local many = {}
    for i = 1, 101 do
      many['x' .. i] = 'a'
    end
    get('more than 100 headers', { headers = many })
  end)
end)

test('hosts without a grant are refused and the error names the grant', function()
  for _, case in
    {
      { {}, 'http://127.0.0.1:9/', '127.0.0.1:9' },
      { { '127.0.0.1' }, 'http://127.0.0.1:9/', '127.0.0.1:9' },
      { { '127.0.0.1:*' }, 'http://localhost:9/', 'localhost:9' },
      { { 'localhost:*' }, 'http://127.0.0.1:9/', '127.0.0.1:9' },
      { { '*:*' }, 'http://127.0.0.1:9/', '127.0.0.1:9' },
      { { '*:*' }, 'http://localhost:9/', 'localhost:9' },
      { { '*:*' }, 'http://app.localhost:9/', 'app.localhost:9' },
      { { '*:*' }, 'http://2130706433:9/', '127.0.0.1:9' },
      { { '*:*' }, 'http://0x7f.1:9/', '127.0.0.1:9' },
      { { '*:*' }, 'http://0177.0.0.1:9/', '127.0.0.1:9' },
      { { '*:*' }, 'http://[::ffff:127.0.0.1]:9/', '[::ffff:7f00:1]:9' },
      { { '*:*' }, 'http://0:9/', '0.0.0.0:9' },
      { { '*' }, 'http://169.254.169.254/latest/', '169.254.169.254' },
      { { 'a.example' }, 'https://b.example/', 'b.example' },
      { { 'a.example' }, 'https://a.example:8443/', 'a.example:8443' },
      { { '127.0.0.1:1' }, 'http://127.0.0.1:9/', '127.0.0.1:9' },
    }
  do
    with(case[1], function(http)
      expect(function()
        http.get(case[2])
      end).fails({ kind = 'permission', message = `:allow (:net ["{case[3]}"])` })
    end)
  end
  for url, message in
    {
      ['file:///etc/passwd'] = 'unsupported scheme `file`, expected http or https; use fs.read to read files',
      ['ftp://127.0.0.1/'] = 'unsupported scheme `ftp`',
      ['data:,x'] = 'unsupported scheme `data`',
      ['http://granted.example@127.0.0.1/'] = 'the URL must not contain a user or password',
    }
  do
    with({ '*:*', '127.0.0.1:*' }, function(http)
      expect(function()
        http.get(url)
      end).fails(message)
    end)
  end
end)
