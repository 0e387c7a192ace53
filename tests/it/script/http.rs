//! `http`: to granted hosts only, whatever the script and the servers try.

use std::fmt::Write as _;

use super::*;
use crate::support::project::Project;
use crate::support::server::{Act, Answer, Received, Server};

mod servers;
mod tls;

/// A whole answer with a length and without chunks.
fn plain(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n", body.as_ref().len());
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    raw([head.as_bytes(), body.as_ref()].concat())
}

/// An answer of these bytes.
fn raw(bytes: impl Into<Vec<u8>>) -> Answer {
    Answer::default().then(Act::Write(bytes.into()))
}

fn answering(answer: Answer) -> Server {
    Server::answering_all(move |_, _| answer.clone())
}

/// Runs the body of a function of `url` under the grants `net`.
fn under(net: &[&str], url: &str, body: &str) -> Result<Value, ToolError> {
    run(granted(net, body), json!({"url": url}))
}

fn granted(net: &[&str], body: &str) -> Script {
    let mut script = with_parameters(&format!("return function(url) {body} end"), &["url"]);
    script.permissions.net = net.iter().map(|grant| String::from(*grant)).collect();
    script
}

/// Runs `body` with everything granted that listens at the loopback address.
fn local(server: &Server, body: &str) -> Result<Value, ToolError> {
    under(&["127.0.0.1:*"], &format!("http://{}", server.address()), body)
}

/// What a script that catches it sees of an error.
fn caught(server: &Server, body: &str) -> String {
    let ended =
        local(server, &format!("local ok, e = pcall(function() {body} end) return {{ ok, tostring(e) }}"));
    let ended = ended.unwrap();
    assert_eq!(ended[0], json!(false), "{ended}");
    ended[1].as_str().unwrap().to_owned()
}

#[test]
fn a_response_is_a_plain_table() {
    let server = Server::answering_all(|_, received| match received.line.as_str() {
        "GET /hello" => {
            plain(200, &[("X-One", "1"), ("x-one", "2"), ("Set-Cookie", "a=1, b"), ("set-cookie", "c")], "hi")
        }
        "GET /bytes" => plain(200, &[], [0xFF, 0, 0xFE]),
        "HEAD /head" => raw("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\ncontent-encoding: gzip\r\n\r\n"),
        "GET /none" => raw("HTTP/1.1 204 No Content\r\n\r\n"),
        "GET /chunked" => Answer::head(200, &[]).piece("a").piece("b").end(),
        _ => plain(404, &[], "nothing here"),
    });
    let host = server.address();
    assert_eq!(
        local(&server, "return http.get(url .. '/hello')"),
        Ok(json!({
            "status": 200, "ok": true, "url": format!("http://{host}/hello"), "body": "hi",
            "headers": {"content-length": "2", "x-one": "1, 2", "set-cookie": "a=1, b\nc"},
        }))
    );
    assert_eq!(local(&server, "return string.byte(http.get(url .. '/bytes').body, 3)"), Ok(json!(0xFE)));
    let lost = "local r = http.get(url .. '/lost#part') return { r.status, r.ok, r.body, r.url }";
    assert_eq!(local(&server, lost), Ok(json!([404, false, "nothing here", format!("http://{host}/lost")])));
    assert_eq!(local(&server, "return http.get(url .. '/none').status"), Ok(json!(204)));
    assert_eq!(local(&server, "return http.get(url .. '/chunked').body"), Ok(json!("ab")));
    let head =
        "local r = http.request({ method = 'head', url = url .. '/head' }) return { r.status, r.body }";
    assert_eq!(local(&server, head), Ok(json!([200, ""])));
}

#[test]
fn requests_say_what_the_script_says() {
    let server = answering(plain(200, &[], "ok"));
    let sent = |body: &str| {
        let ended = local(&server, body);
        assert!(ended.is_ok(), "{body}: {ended:?}");
        server.posts().pop().unwrap()
    };
    let text = |received: &Received| String::from_utf8(received.raw.clone()).unwrap();

    let got = sent(
        "http.get(url .. '/a?b=1', { query = { q = 'x y&ü', n = 2, f = 1.5, t = true, l = { 'a', 3 } } })",
    );
    assert_eq!(got.line, "GET /a?b=1&f=1.5&l=a&l=3&n=2&q=x+y%26%C3%BC&t=true");
    assert_eq!(got.header("accept-encoding"), Some("gzip"));
    assert!(got.header("user-agent").unwrap().starts_with("deftool/"), "{got:?}");
    assert_eq!(
        (got.header("referer"), got.header("cookie"), got.header("authorization")),
        (None, None, None)
    );

    let got = sent(
        "http.get(url, { headers = { Authorization = 'Bearer x', ['X-N'] = 7, ['X-L'] = { 'a', 'b' }, ['user-agent'] = 'me' } })",
    );
    assert_eq!(got.header("authorization"), Some("Bearer x"));
    assert_eq!((got.header("x-n"), got.header("user-agent")), (Some("7"), Some("me")));
    assert!(text(&got).contains("x-l: a\r\nx-l: b\r\n"), "{}", text(&got));

    let got = sent("http.post(url, 'a\\0b')");
    assert!(text(&got).ends_with("\r\n\r\na\0b") && got.line == "POST /", "{}", text(&got));
    let got = sent("http.post(url, nil, { json = { a = json.array(), b = json.null } })");
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert!(text(&got).ends_with("\r\n\r\n{\"a\":[],\"b\":null}"), "{}", text(&got));
    let got = sent(
        "http.post(url, nil, { form = { b = 'x y', a = { 1, 2 } }, headers = { ['content-type'] = 'x/y' } })",
    );
    assert_eq!(got.header("content-type"), Some("x/y"));
    assert!(text(&got).ends_with("\r\n\r\na=1&a=2&b=x+y"), "{}", text(&got));
    let got = sent("http.request({ method = 'patch', url = url, body = 'z', timeout = 5, max_bytes = 10 })");
    assert!(got.line == "PATCH /" && text(&got).ends_with("\r\n\r\nz"), "{}", text(&got));
    // A script's own table of options may have any metatable: it is not asked.
    let got = sent("http.get(url, setmetatable({}, { __index = function() error('asked') end }))");
    assert_eq!(got.line, "GET /");
}

#[test]
fn what_is_wrong_in_a_request_is_said_and_nothing_is_sent() {
    let server = answering(plain(200, &[], "ok"));
    for (body, says) in [
        ("http.get()", "http.get: expected a URL, as a string, got nothing"),
        ("http.get(7)", "expected a URL, as a string, got number"),
        ("http.get(url, 'x')", "expected a table of options, got string"),
        ("http.request(url)", "http.request: expected a table of options, got string"),
        ("http.request()", "http.request: expected a URL, as a string, got nothing"),
        ("http.request({})", "expected a URL"),
        (
            "http.get(url, { method = 'POST' })",
            "there is no option method; there are query, headers, timeout, max_bytes, redirects",
        ),
        ("http.get(url, { Query = {} })", "there is no option Query"),
        ("http.get(url, { 'a' })", "there is no option 1"),
        ("http.get(url, { body = 'x' })", "there is no option body"),
        ("http.post(url, { a = 1 })", "a table is sent with json"),
        ("http.post(url, 'x', { json = 1 })", "three ways to say one thing"),
        ("http.request({ url = url, form = {}, json = 1 })", "three ways to say one thing"),
        ("http.post(url, nil, { json = print })", "cannot encode json: function"),
        ("http.post(url, nil, { json = { a = 0/0 } })", "cannot encode json.a: NaN"),
        (
            "http.get(url, { query = { a = print } })",
            "query.a = a string, a number, a boolean or an array of them, got function",
        ),
        ("http.get(url, { query = { a = json.null } })", "got json.null"),
        ("http.get(url, { query = { a = '\\255' } })", "query holds what is not UTF-8"),
        ("http.get(url, { query = { a = string.rep('x', 20000) } })", "query has more than"),
        ("http.get(url, { timeout = 0 })", "expected timeout to be a positive number of seconds, got 0"),
        ("http.get(url, { timeout = 0/0 })", "got NaN"),
        ("http.get(url, { timeout = -1/0 })", "got -inf"),
        ("http.get(url, { timeout = '5' })", "got string"),
        ("http.get(url, { max_bytes = '5' })", "got string"),
        (
            "http.get(url, { max_bytes = 2 ^ 40 })",
            "max_bytes to be a whole number from 1 to 33554432, got 1099511627776",
        ),
        ("http.get(url, { max_bytes = 1.5 })", "got 1.5"),
        ("http.get(url, { redirects = -1 })", "from 0 to 20, got -1"),
        ("http.get(url .. '/\\255')", "the URL is not UTF-8"),
        // What would smuggle a header or a request.
        ("http.get(url .. '/\\r\\nX-Evil: 1')", "U+000D"),
        ("http.get(url .. '/ HTTP/1.1\\r\\n\\r\\nGET /')", "a space"),
        (
            "http.get(url, { headers = { x = 'a\\r\\nx-evil: 1' } })",
            "the value of the header x holds a line end",
        ),
        ("http.get(url, { headers = { x = 'a\\nb' } })", "holds a line end"),
        ("http.get(url, { headers = { x = 'a\\0b' } })", "holds a line end"),
        ("http.get(url, { headers = { ['x: y\\r\\nz'] = 'a' } })", "is no name of a header"),
        ("http.get(url, { headers = { ['x y'] = 'a' } })", "is no name of a header"),
        ("http.get(url, { headers = { [''] = 'a' } })", "is no name of a header"),
        ("http.get(url, { headers = { x = {} , y = true } })", "headers[\"y\"] = a string, got boolean"),
        ("http.request({ url = url, method = 'GET / HTTP/1.1\\r\\nx: y' })", "expected method = a word"),
        ("http.request({ url = url, method = '' })", "expected method = a word"),
        ("http.request({ url = url, method = 'CONNECT' })", "expected method = a word"),
        ("http.request({ url = url, method = 'trace' })", "expected method = a word"),
        ("http.post(url, string.rep('x', 33554433))", "longer than 32 MiB"),
    ] {
        let message = caught(&server, body);
        assert!(message.contains(says), "{body}: {message}");
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
    for header in [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "Proxy-Authorization",
        "proxy-x",
        "TE",
        "Expect",
        "Keep-Alive",
        "Trailer",
    ] {
        let message = caught(&server, &format!("http.get(url, {{ headers = {{ ['{header}'] = 'x' }} }})"));
        assert!(message.contains("is the engine's own"), "{header}: {message}");
    }
    let many = caught(
        &server,
        "local h = {} for i = 1, 101 do h['x' .. i] = 'a' end http.get(url, { headers = h })",
    );
    assert!(many.contains("more than 100 headers"), "{many}");
    assert_eq!(server.connections(), 0);
}

#[test]
fn hosts_that_are_not_granted_are_refused_with_the_grant_to_add() {
    let server = answering(plain(200, &[], "ok"));
    let port = server.address().port();
    for (net, url, advice) in [
        (&[][..], format!("http://127.0.0.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["127.0.0.1"], format!("http://127.0.0.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["127.0.0.1:*"], format!("http://localhost:{port}/"), format!("\"localhost:{port}\"")),
        (&["localhost:*"], format!("http://127.0.0.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["*:*"], format!("http://127.0.0.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["*:*"], format!("http://localhost:{port}/"), format!("\"localhost:{port}\"")),
        (&["*:*"], format!("http://app.localhost:{port}/"), format!("\"app.localhost:{port}\"")),
        (&["*:*"], format!("http://2130706433:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["*:*"], format!("http://0x7f.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["*:*"], format!("http://0177.0.0.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
        (&["*:*"], format!("http://[::ffff:127.0.0.1]:{port}/"), format!("\"[::ffff:7f00:1]:{port}\"")),
        (&["*:*"], format!("http://0:{port}/"), format!("\"0.0.0.0:{port}\"")),
        (&["*"], String::from("http://169.254.169.254/latest/"), String::from("\"169.254.169.254\"")),
        (&["a.example"], String::from("https://b.example/"), String::from("\"b.example\"")),
        (&["a.example"], String::from("https://a.example:8443/"), String::from("\"a.example:8443\"")),
        (&["127.0.0.1:1"], format!("http://127.0.0.1:{port}/"), format!("\"127.0.0.1:{port}\"")),
    ] {
        let error = under(net, &url, "return http.get(url)").unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{net:?} {url}: {error}");
        assert!(error.message.contains(&format!(":allow (:net [{advice}])")), "{net:?} {url}: {error}");
        assert!(error.message.starts_with("scripts/probe.lua:1: http.get: "), "{error}");
    }
    assert_eq!(server.connections(), 0);
    for (net, url) in [
        (&["127.0.0.1:*"][..], format!("http://2130706433:{port}/")),
        (&["localhost:*"], format!("http://LOCALHOST.:{port}/")),
        (&["*.localhost:*"], format!("http://app.localhost:{port}/")),
    ] {
        assert_eq!(under(net, &url, "return http.get(url).body"), Ok(json!("ok")), "{net:?} {url}");
    }
    for (url, says) in [
        ("file:///etc/passwd", "only http and https are spoken, not file; files are read with fs.read"),
        ("ftp://127.0.0.1/", "not ftp"),
        ("data:,x", "not data"),
        ("http://granted.example@127.0.0.1/", "a user or password in a URL is refused"),
    ] {
        let error = under(&["*:*", "127.0.0.1:*"], url, "return http.get(url)").unwrap_err();
        assert!(error.message.contains(says), "{url}: {error}");
    }
}

#[test]
fn redirects_are_followed_and_judged_at_every_hop() {
    let other = answering(plain(200, &[], "other"));
    let denied = answering(plain(200, &[], "denied"));
    let (other_port, denied_port) = (other.address().port(), denied.address().port());
    let server = Server::answering_all(move |_, received| {
        let to = |status: u16, location: &str| plain(status, &[("location", location)], "moved");
        match received.line.split(' ').nth(1).unwrap() {
            "/other" => to(307, &format!("http://127.0.0.1:{other_port}/x#y")),
            "/denied" => to(302, &format!("http://127.0.0.1:{denied_port}/")),
            "/name" => to(302, &format!("http://localhost:{denied_port}/")),
            "/metadata" => to(301, "http://169.254.169.254/latest/meta-data/"),
            "/decimal" => to(301, &format!("http://2130706433:{denied_port}/")),
            "/file" => to(302, "file:///etc/passwd"),
            "/user" => to(302, &format!("http://a:b@127.0.0.1:{other_port}/")),
            "/broken" => to(302, "http://["),
            "/loop" => to(302, "/loop"),
            "/303" => to(303, "/end"),
            "/308" => to(308, "end"),
            "/nowhere" => plain(302, &[], "no location"),
            _ => plain(200, &[], "end"),
        }
    });
    let here = server.address();
    let net = [here.to_string(), other.address().to_string()];
    let net: Vec<&str> = net.iter().map(String::as_str).collect();
    let get = |path: &str, rest: &str| {
        let body = format!(
            "local r = http.request({{ url = url, method = 'POST', body = 'b', {rest} }}) return {{ r.status, r.body, r.url }}"
        );
        under(&net, &format!("http://{here}{path}"), &body)
    };
    assert_eq!(get("/303", ""), Ok(json!([200, "end", format!("http://{here}/end")])));
    assert_eq!(server.posts().pop().unwrap().line, "GET /end");
    assert_eq!(get("/308", ""), Ok(json!([200, "end", format!("http://{here}/end")])));
    let last = server.posts().pop().unwrap();
    assert!(last.line == "POST /end" && last.raw.ends_with(b"\r\n\r\nb"), "{last:?}");
    assert_eq!(get("/nowhere", "").unwrap()[0], json!(302));
    assert_eq!(get("/denied", "redirects = 0").unwrap()[0], json!(302));

    let secret = "headers = { authorization = 'canary', cookie = 'canary', ['x-api-key'] = 'canary', accept = 'kept' }";
    assert_eq!(get("/other", secret), Ok(json!([200, "other", format!("http://127.0.0.1:{other_port}/x")])));
    let received = other.posts().pop().unwrap();
    assert_eq!((received.line.as_str(), received.header("accept")), ("POST /x", Some("kept")));
    let received = String::from_utf8(received.raw).unwrap();
    assert!(!received.contains("canary") && !received.contains("referer"), "{received}");

    for (path, says) in [
        ("/denied", format!("after a redirect: 127.0.0.1:{denied_port} is not allowed")),
        ("/name", format!("localhost:{denied_port} is not allowed")),
        ("/metadata", String::from("169.254.169.254 is not allowed")),
        ("/decimal", format!("127.0.0.1:{denied_port} is not allowed")),
    ] {
        let error = get(path, "").unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{path}: {error}");
        assert!(error.message.contains(&says) && error.message.contains(":allow (:net ["), "{path}: {error}");
    }
    for (path, says) in [
        ("/file", "redirects, but only http and https are spoken"),
        ("/user", "redirects, but a user or password"),
        ("/broken", "redirects, but its Location \"http://[\" is no URL"),
        ("/loop", "more than 5 redirects"),
    ] {
        let error = get(path, "").unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Script, "{path}: {error}");
        assert!(error.message.contains(says), "{path}: {error}");
    }
    assert_eq!(denied.connections(), 0);
}

#[test]
fn many_tasks_ask_at_once_and_take_turns() {
    let open = Arc::new(Mutex::new((0_usize, 0_usize)));
    let counted = Arc::clone(&open);
    let server = Server::answering_all(move |_, _| {
        let mut counts = counted.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        let left = Arc::clone(&counted);
        Answer::default()
            .wait_ms(10)
            .then(Act::Do(Arc::new(move || left.lock().unwrap().0 -= 1)))
            .then(Act::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()))
    });
    let body = "local done = 0
        for i = 1, 100 do
          task.spawn(function() if http.get(url, { max_bytes = 1000 }).body == 'ok' then done += 1 end end)
        end
        repeat task.wait(0.005) until done == 100
        return done";
    assert_eq!(local(&server, body), Ok(json!(100)));
    let most = open.lock().unwrap().1;
    assert!((2..=16).contains(&most), "{most} at a time");
    assert!(server.connections() <= 100);
}

#[test]
fn a_call_that_ends_takes_its_requests_along() {
    // Cancelled from outside.
    let server = answering(Answer::head(200, &[]).piece("a").then(Act::Silence));
    let script = Arc::new(granted(&["127.0.0.1:*"], "return http.get(url).body"));
    let (runner, _) = listening();
    block_on(async {
        let url = format!("http://{}", server.address());
        let waiting = runner.call(script, call(json!({"url": url})), CallContext::default());
        tokio::select! {
            ended = waiting => panic!("{ended:?}"),
            asked = tokio::task::spawn_blocking({
                let server = Arc::new(server);
                move || { server.wait_for_posts(1); server }
            }) => {
                let server = asked.unwrap();
                // The call's future is dropped by now.
                tokio::task::spawn_blocking(move || server.wait_for_client_to_leave()).await.unwrap();
            }
        }
    });
    // At its deadline, by which a busy machine may not have asked yet.
    let asked = [700, 3_000, 12_000].into_iter().find_map(|limit| {
        let server = answering(Answer::silent());
        let mut script = granted(&["127.0.0.1:*"], "pcall(http.get, url) return 'late'");
        script.timeout = Some(Duration::from_millis(limit));
        let ended = run(script, json!({"url": format!("http://{}", server.address())}));
        assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Timeout);
        (!server.posts().is_empty()).then_some(server)
    });
    asked.unwrap().wait_for_client_to_leave();
    // Left behind by the function that began it, once the server has it.
    let asked = Mutex::new(false);
    let server = Server::answering_all(move |_, received| {
        if received.line == "GET /silent" {
            *asked.lock().unwrap() = true;
            return Answer::silent();
        }
        plain(200, &[], if *asked.lock().unwrap() { "asked" } else { "not yet" })
    });
    let body = "task.spawn(http.get, url .. '/silent') repeat until http.get(url).body == 'asked' return 1";
    assert_eq!(local(&server, body), Ok(json!(1)));
    server.wait_for_client_to_leave();
}

#[test]
fn nothing_is_asked_while_a_script_loads() {
    let server = answering(plain(200, &[], "ok"));
    let mut script = script(&format!("http.get('http://{}') return function() end", server.address()));
    script.permissions.net = vec![String::from("127.0.0.1:*")];
    let error = run(script, json!({})).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Load);
    assert!(error.message.contains("http.get is not available while the script loads"), "{error}");
    assert_eq!(server.connections(), 0);
}

/// A connection that is kept is for those with the same grants.
#[test]
fn connections_do_not_cross_grants() {
    let server = answering(plain(200, &[], "ok"));
    let url = format!("http://{}", server.address());
    let twice = "http.get(url) return http.get(url).body";
    assert_eq!(under(&["127.0.0.1:*"], &url, twice), Ok(json!("ok")));
    let after_one = server.connections();
    assert_eq!(under(&["127.0.0.1:*", "a.example"], &url, twice), Ok(json!("ok")));
    assert!(server.connections() > after_one, "the second tool was given the connection of the first");
    assert_eq!(server.posts().len(), 4);
}

#[test]
fn ipv6_is_spoken_too() {
    let server = Server::answering_at("[::1]:0", |_, _| plain(200, &[], "six"));
    let port = server.address().port();
    for (grant, host) in [("[::1]:*", "[::1]"), ("localhost:*", "localhost"), ("::1", "[::1]")] {
        let ended = under(&[grant], &format!("http://{host}:{port}/"), "return http.get(url).body");
        match grant {
            // At 80 and 443 only.
            "::1" => assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Permission),
            _ => assert_eq!(ended, Ok(json!("six")), "{grant}"),
        }
    }
}

/// Keys, proxies and credentials of the environment: nothing of it is used or sent.
#[test]
fn the_environment_is_never_sent() {
    let proxy = answering(plain(200, &[], "through the proxy"));
    let server = answering(plain(200, &[], "straight"));
    let project = Project::empty();
    let here = server.address();
    project.write(
        "specs/tools.eld",
        format!("(deftool :name \"ask\" :description \"Ask.\" :args () :allow (:net [\"{here}\"]))"),
    );
    project.write(
        "scripts/ask.lua",
        format!("return function() return http.post('http://{here}/', 'body', {{ headers = {{ accept = '*/*' }} }}).body end"),
    );
    project.write(".netrc", format!("machine {} login canary password canary\n", here.ip()));
    let mut command = project.command(&["call", "ask", "{}", "--trust"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"] {
        command.env(name, format!("http://canary@{}", proxy.address()));
    }
    command.env("NO_PROXY", "").env("OPENAI_API_KEY", "canary").env("HOME", project.path("."));
    let output = command.output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("straight") && !text.contains("canary"), "{text}");
    assert_eq!(proxy.connections(), 0);
    let received = String::from_utf8(server.posts().pop().unwrap().raw).unwrap();
    assert!(!received.contains("canary"), "{received}");
}
