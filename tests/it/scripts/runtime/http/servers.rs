//! Faulty and malicious servers: the errors that scripts see, and the limits on time and memory.

use std::fmt::Write as _;
use std::io::Write as _;

use deftool_test_support::server::ClosedPort;

use super::*;

/// Checks the error message for `answer` that a script can catch.
fn expect_message(name: &str, answer: Answer, options: &str, expected: &str) {
    let server = responding(answer);
    let message = caught_message(&server, &format!("http.get(url .. '/p?secret', {{ {options} }})"));
    assert!(message.contains(expected), "{name}: {message}");
    assert!(message.contains(&format!("http.get: http://{}/p: ", server.address())), "{name}: {message}");
    assert!(!message.contains("secret"), "{name}: {message}");
    assert!(!message.chars().any(char::is_control), "{name}: {message:?}");
}

#[test]
fn invalid_responses_are_errors_that_a_script_can_catch() {
    let mut many_headers = String::from("HTTP/1.1 200 OK\r\n");
    for index in 0..200 {
        let _ = write!(many_headers, "x-{index}: a\r\n");
    }
    for (name, answer, expected) in [
        (
            "closed at once",
            Answer::default().then(Act::Close),
            "request failed: connection closed before message completed",
        ),
        ("closed in the head", raw("HTTP/1.1 200 OK\r\nx: ").then(Act::Close), "request failed"),
        (
            "closed in the body",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").then(Act::Close),
            "request failed: end of file before message length reached",
        ),
        (
            "closed in a chunk",
            raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nhalf").then(Act::Close),
            "request failed",
        ),
        (
            "reset",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").then(Act::Reset),
            "request failed",
        ),
        (
            "no HTTP",
            raw("SSH-2.0-OpenSSH_9.0\r\n").then(Act::Close),
            "request failed: invalid HTTP version parsed",
        ),
        (
            "terminal escapes",
            raw("HTTP/1.1 \x1b[31m OK\r\n\r\n").then(Act::Close),
            "request failed: invalid HTTP",
        ),
        (
            "two lengths",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
            "request failed: invalid content-length",
        ),
        (
            "a bad chunk",
            raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
            "request failed: ",
        ),
        (
            "a folded header",
            raw("HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n"),
            "request failed: invalid HTTP header parsed",
        ),
        ("many headers", raw(many_headers + "\r\n"), "request failed: message head is too large"),
        (
            "endless header",
            raw("HTTP/1.1 200 OK\r\nx: ").then(Act::Endless(vec![b'a'; 4096])),
            "request failed: message head is too large",
        ),
        (
            "endless headers",
            raw("HTTP/1.1 200 OK\r\n").then(Act::Endless(b"x: y\r\n".repeat(100))),
            "request failed: message head is too large",
        ),
        (
            "no gzip",
            plain(200, &[("content-encoding", "gzip")], "text"),
            "request failed: Invalid gzip header",
        ),
    ] {
        expect_message(name, answer, "", expected);
    }
    // Bytes beyond the content length are ignored.
    let server = responding(raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhello").then(Act::Close));
    assert_eq!(run_local(&server, "return http.get(url).body"), Ok(json!("he")));

    let closed = ClosedPort::reserve();
    let error = run_with_grants(&["127.0.0.1:*"], &closed.endpoint(), "return http.get(url)").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Script);
    assert!(error.message.ends_with("/v1: connection refused; check that the server is running"), "{error}");
}

/// Responses that are too long or too slow are aborted.
#[test]
fn size_and_time_limits_abort_a_response() {
    let endless_chunks = Answer::head(200, &[]).then(Act::Endless(b"5\r\nhello\r\n".to_vec()));
    for (name, answer, options, expected) in [
        (
            "too long by its length",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"),
            "max_bytes = 98",
            "the response body is longer than 98 bytes; request less, or increase max_bytes",
        ),
        (
            "too long by what comes",
            Answer::head(200, &[]).piece("a").piece("bc").end(),
            "max_bytes = 2",
            "longer than 2 bytes",
        ),
        ("endless body", endless_chunks, "max_bytes = 100000", "longer than 100000 bytes"),
        ("silence", Answer::silent(), "timeout = 0.1", "no complete response within timeout = 0.1 s"),
        (
            "a slow body",
            Answer::head(200, &[]).piece("a").then(Act::Silence),
            "timeout = 0.2",
            "no complete response within timeout = 0.2 s",
        ),
        (
            "endless interim answers",
            Answer::default().then(Act::Endless(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec())),
            "timeout = 0.3",
            "no complete response within",
        ),
    ] {
        expect_message(name, answer, options, expected);
    }
}

#[test]
fn gzip_bodies_are_decompressed_up_to_the_limit() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let text = gzip(&b"hello ".repeat(1000));
    // A gigabyte of zeros, in members of 16 MiB.
    let bomb = gzip(&vec![0; 16 << 20]).repeat(64);
    let server = Server::answering_all(move |_, received| match received.line.as_str() {
        "GET /text" => plain(200, &[("content-encoding", "gzip"), ("x", "y")], &text),
        "GET /cut" => plain(200, &[("content-encoding", "gzip")], &text[..text.len() - 4]),
        "GET /other" => plain(200, &[("content-encoding", "br")], "as it came"),
        _ => plain(200, &[("content-encoding", "gzip")], &bomb),
    });
    let text = "local r = http.get(url .. '/text') return { #r.body, r.headers }";
    assert_eq!(run_local(&server, text), Ok(json!([6000, {"x": "y"}])));
    assert!(caught_message(&server, "http.get(url .. '/cut')").contains("unexpected end of file"));
    let short = caught_message(&server, "http.get(url .. '/text', { max_bytes = 5999 })");
    assert!(short.contains("longer than 5999 bytes"), "{short}");
    // Bodies with other encodings are returned unchanged, with their header.
    let other = "local r = http.get(url .. '/other') return { r.body, r.headers['content-encoding'] }";
    assert_eq!(run_local(&server, other), Ok(json!(["as it came", "br"])));
    let bomb = caught_message(&server, "http.get(url .. '/bomb')");
    assert!(bomb.contains("longer than 8388608 bytes"), "{bomb}");
}
