//! `http`: requests reach only granted hosts, even with malicious scripts and servers. Invalid requests and refused hosts
//! are tested in `tests/test_command/scripts/scripts/http_test.lua`.

use std::fmt::Write as _;

use deftool_test_support::server::{Act, Answer, Received, Server};

use super::*;
use crate::support::project::Project;

mod servers;
mod tls;

/// A complete response with a content length.
fn plain(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n", body.as_ref().len());
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    raw([head.as_bytes(), body.as_ref()].concat())
}

/// A response with these raw bytes.
fn raw(bytes: impl Into<Vec<u8>>) -> Answer {
    Answer::default().then(Act::Write(bytes.into()))
}

fn responding(answer: Answer) -> Server {
    Server::answering_all(move |_, _| answer.clone())
}

/// Runs `body` as a function with the parameter `url` and the grants `net`.
fn run_with_grants(net: &[&str], url: &str, body: &str) -> Result<Value, ToolError> {
    run(granted(net, body), json!({"url": url}))
}

fn granted(net: &[&str], body: &str) -> Script {
    let mut script = with_parameters(&format!("return function(url) {body} end"), &["url"]);
    script.permissions.net = net.iter().map(|grant| String::from(*grant)).collect();
    script
}

/// Runs `body` with a grant of all ports of the loopback address.
fn run_local(server: &Server, body: &str) -> Result<Value, ToolError> {
    run_with_grants(&["127.0.0.1:*"], &format!("http://{}", server.address()), body)
}

/// Returns the message of an error that the script catches.
fn caught_message(server: &Server, body: &str) -> String {
    let ended = run_local(
        server,
        &format!("local ok, e = pcall(function() {body} end) return {{ ok, tostring(e) }}"),
    );
    let ended = ended.unwrap();
    assert_eq!(ended[0], json!(false), "{ended}");
    ended[1].as_str().unwrap().to_owned()
}

#[test]
fn a_response_is_a_table() {
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
        run_local(&server, "return http.get(url .. '/hello')"),
        Ok(json!({
            "status": 200, "ok": true, "url": format!("http://{host}/hello"), "body": "hi",
            "headers": {"content-length": "2", "x-one": "1, 2", "set-cookie": "a=1, b\nc"},
        }))
    );
    assert_eq!(run_local(&server, "return string.byte(http.get(url .. '/bytes').body, 3)"), Ok(json!(0xFE)));
    let lost = "local r = http.get(url .. '/lost#part') return { r.status, r.ok, r.body, r.url }";
    assert_eq!(
        run_local(&server, lost),
        Ok(json!([404, false, "nothing here", format!("http://{host}/lost")]))
    );
    assert_eq!(run_local(&server, "return http.get(url .. '/none').status"), Ok(json!(204)));
    assert_eq!(run_local(&server, "return http.get(url .. '/chunked').body"), Ok(json!("ab")));
    let head =
        "local r = http.request({ method = 'head', url = url .. '/head' }) return { r.status, r.body }";
    assert_eq!(run_local(&server, head), Ok(json!([200, ""])));
}

#[test]
fn requests_contain_what_the_script_passes() {
    let server = responding(plain(200, &[], "ok"));
    let sent = |body: &str| {
        let ended = run_local(&server, body);
        assert!(ended.is_ok(), "{body}: {ended:?}");
        server.posts().pop().unwrap()
    };
    let text = |received: &Received| String::from_utf8(received.raw.clone()).unwrap();

    let got = sent(
        "http.get(url .. '/a?b=1', { query = { q = 'x y&ü', n = 2, f = 1.5, t = true, l = { 'a', 3 } } })",
    );
    assert_eq!(got.line, "GET /a?b=1&f=1.5&l=a&l=3&n=2&q=x+y%26%C3%BC&t=true");
    assert_eq!(got.header("accept-encoding"), Some("gzip,deflate"));
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
    // Metatables of the options are not used.
    let got = sent("http.get(url, setmetatable({}, { __index = function() error('asked') end }))");
    assert_eq!(got.line, "GET /");
}

/// Calls `body` with a trace context, and returns the trace headers of its request.
fn sent_trace(runner: &ScriptRunner, body: &str) -> (Option<String>, Option<String>) {
    let server = responding(plain(200, &[], "ok"));
    let script = granted(&["127.0.0.1:*"], body);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let context = CallContext { trace: TraceContext::parse(trace, "a=1"), ..CallContext::default() };
    let url = json!({"url": format!("http://{}", server.address())});
    block_on(runner.value_of(Arc::new(script), call(url), context)).unwrap();
    let received = server.posts().pop().unwrap();
    let header = |name: &str| received.header(name).map(str::to_owned);
    (header("traceparent"), header("tracestate"))
}

#[test]
fn requests_carry_the_trace_of_their_call_unless_the_script_sets_one() {
    let some = |parent: &str, state: &str| (Some(parent.to_owned()), Some(state.to_owned()));
    let runner = runner();
    let own = some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1");
    assert_eq!(sent_trace(&runner, "http.get(url)"), own);
    assert_eq!(sent_trace(&runner, "http.post(url, 'x')"), own);
    let set = "http.get(url, { headers = { TraceParent = 'mine' } })";
    assert_eq!(sent_trace(&runner, set), (Some(String::from("mine")), None));
    let set = "http.get(url, { headers = { tracestate = 'b=2' } })";
    assert_eq!(sent_trace(&runner, set), (None, Some(String::from("b=2"))));
}

/// Runs `body` in a call with an idempotency key. Returns the method and the key of each request.
fn sent_keys(runner: &ScriptRunner, effect: Effect, body: &str) -> Vec<String> {
    let server = Server::answering_all(|_, received| match received.path() {
        "/moved" => plain(307, &[("location", &format!("http://localhost:{}/", port_of(received)))], ""),
        _ => plain(200, &[], "ok"),
    });
    let script = Arc::new(granted(&["127.0.0.1:*", "localhost:*"], body));
    let url = json!({"url": format!("http://{}/", server.address())});
    for _ in 0..2 {
        let key = String::from("r-c");
        let context = CallContext { idempotency_key: key, effect, ..CallContext::default() };
        block_on(runner.value_of(Arc::clone(&script), call(url.clone()), context)).unwrap();
    }
    let sent = server.posts();
    let sent = sent.iter().map(|sent| format!("{} {:?}", sent.method(), sent.header("idempotency-key")));
    let mut sent: Vec<String> = sent.collect();
    let again = sent.split_off(sent.len() / 2);
    assert_eq!(sent, again, "the call runs again with the same keys");
    sent
}

fn port_of(received: &Received) -> &str {
    received.header("host").unwrap().rsplit(':').next().unwrap()
}

#[test]
fn requests_of_a_keyed_call_carry_an_idempotency_key() {
    let runner = runner();
    let several =
        "http.get(url) http.post(url, 'a') http.request({ method = 'DELETE', url = url }) http.post(url, 'a')
        http.request({ method = 'OPTIONS', url = url })";
    assert_eq!(
        sent_keys(&runner, Effect::Keyed, several),
        ["GET None", "POST Some(\"r-c\")", "DELETE Some(\"r-c-2\")", "POST Some(\"r-c-3\")", "OPTIONS None"]
    );
    let own = "http.post(url, 'a', { headers = { ['idempotency-key'] = 'mine' } }) http.post(url, 'a')";
    assert_eq!(sent_keys(&runner, Effect::Keyed, own), ["POST Some(\"mine\")", "POST Some(\"r-c\")"]);
    // A redirect to another origin keeps it.
    let moved = "http.post(url .. 'moved', 'a')";
    assert_eq!(sent_keys(&runner, Effect::Keyed, moved), ["POST Some(\"r-c\")", "POST Some(\"r-c\")"]);
    for effect in [Effect::Once, Effect::Pure] {
        assert_eq!(sent_keys(&runner, effect, "http.post(url, 'a')"), ["POST None"]);
    }
}

#[test]
fn granted_hosts_are_reached_under_every_name() {
    let server = responding(plain(200, &[], "ok"));
    let port = server.address().port();
    for (net, url) in [
        (&["127.0.0.1:*"][..], format!("http://2130706433:{port}/")),
        (&["localhost:*"], format!("http://LOCALHOST.:{port}/")),
        (&["*.localhost:*"], format!("http://app.localhost:{port}/")),
    ] {
        assert_eq!(run_with_grants(net, &url, "return http.get(url).body"), Ok(json!("ok")), "{net:?} {url}");
    }
}

#[test]
fn every_redirect_is_checked() {
    let other = responding(plain(200, &[], "other"));
    let denied = responding(plain(200, &[], "denied"));
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
        run_with_grants(&net, &format!("http://{here}{path}"), &body)
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

    for (path, expected) in [
        ("/denied", format!("after a redirect: 127.0.0.1:{denied_port} is not allowed")),
        ("/name", format!("localhost:{denied_port} is not allowed")),
        ("/metadata", String::from("169.254.169.254 is not allowed")),
        ("/decimal", format!("127.0.0.1:{denied_port} is not allowed")),
    ] {
        let error = get(path, "").unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{path}: {error}");
        assert!(
            error.message.contains(&expected) && error.message.contains(":allow (:net ["),
            "{path}: {error}"
        );
    }
    for (path, expected) in [
        ("/file", "invalid redirect: unsupported scheme `file`"),
        ("/user", "invalid redirect: the URL must not contain a user or password"),
        ("/broken", "invalid redirect: invalid Location \"http://[\""),
        ("/loop", "more than 5 redirects"),
    ] {
        let error = get(path, "").unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Script, "{path}: {error}");
        assert!(error.message.contains(expected), "{path}: {error}");
    }
    assert_eq!(denied.connections(), 0);
}

#[test]
fn concurrent_requests_of_a_call_are_limited() {
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
    assert_eq!(run_local(&server, body), Ok(json!(100)));
    let most = open.lock().unwrap().1;
    assert!((2..=16).contains(&most), "{most} at a time");
    assert!(server.connections() <= 100);
}

#[test]
fn ending_a_call_aborts_its_requests() {
    // The caller drops the call.
    let server = responding(Answer::head(200, &[]).piece("a").then(Act::Silence));
    let script = Arc::new(granted(&["127.0.0.1:*"], "return http.get(url).body"));
    let (runner, _) = runner_with_events();
    block_on(async {
        let url = format!("http://{}", server.address());
        let waiting = runner.value_of(script, call(json!({"url": url})), CallContext::default());
        tokio::select! {
            ended = waiting => panic!("{ended:?}"),
            requested = tokio::task::spawn_blocking({
                let server = Arc::new(server);
                move || { server.wait_for_posts(1); server }
            }) => {
                let server = requested.unwrap();
                // The future of the call has been dropped.
                tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
            }
        }
    });
    // The call times out. On a busy machine it may not have sent the request by then.
    let requested = [700, 3_000, 12_000].into_iter().find_map(|limit| {
        let server = responding(Answer::silent());
        let mut script = granted(&["127.0.0.1:*"], "pcall(http.get, url) return 'late'");
        script.timeout = Some(Duration::from_millis(limit));
        let ended = run(script, json!({"url": format!("http://{}", server.address())}));
        assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Timeout);
        (!server.posts().is_empty()).then_some(server)
    });
    requested.unwrap().wait_for_disconnect();
    // The function returns after the server has received the request.
    let requested = Mutex::new(false);
    let server = Server::answering_all(move |_, received| {
        if received.line == "GET /silent" {
            *requested.lock().unwrap() = true;
            return Answer::silent();
        }
        plain(200, &[], if *requested.lock().unwrap() { "asked" } else { "not yet" })
    });
    let body = "task.spawn(http.get, url .. '/silent') repeat until http.get(url).body == 'asked' return 1";
    assert_eq!(run_local(&server, body), Ok(json!(1)));
    server.wait_for_disconnect();
}

#[test]
fn requests_are_refused_while_the_script_loads() {
    let server = responding(plain(200, &[], "ok"));
    let mut script = script(&format!("http.get('http://{}') return function() end", server.address()));
    script.permissions.net = vec![String::from("127.0.0.1:*")];
    let error = run(script, json!({})).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Load);
    assert!(error.message.contains("http.get is not available while the script loads"), "{error}");
    assert_eq!(server.connections(), 0);
}

/// A connection is reused only for calls with the same grants.
#[test]
fn connections_are_not_shared_between_different_grants() {
    let server = responding(plain(200, &[], "ok"));
    let url = format!("http://{}", server.address());
    let twice = "http.get(url) return http.get(url).body";
    assert_eq!(run_with_grants(&["127.0.0.1:*"], &url, twice), Ok(json!("ok")));
    let after_one = server.connections();
    assert_eq!(run_with_grants(&["127.0.0.1:*", "a.example"], &url, twice), Ok(json!("ok")));
    assert!(server.connections() > after_one, "the second tool reused the connection of the first");
    assert_eq!(server.posts().len(), 4);
}

#[test]
fn ipv6_is_supported() {
    let server = Server::answering_at("[::1]:0", |_, _| plain(200, &[], "six"));
    let port = server.address().port();
    for (grant, host) in [("[::1]:*", "[::1]"), ("localhost:*", "localhost"), ("::1", "[::1]")] {
        let ended = run_with_grants(&[grant], &format!("http://{host}:{port}/"), "return http.get(url).body");
        match grant {
            // Only ports 80 and 443.
            "::1" => assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Permission),
            _ => assert_eq!(ended, Ok(json!("six")), "{grant}"),
        }
    }
}

/// Keys, proxies and credentials in the environment are neither used nor sent.
#[test]
fn the_environment_is_never_sent() {
    let proxy = responding(plain(200, &[], "through the proxy"));
    let server = responding(plain(200, &[], "straight"));
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
