//! Servers that misbehave: what a script is told, and that nothing is waited or paid for.

use std::fmt::Write as _;
use std::io::Write as _;

use super::*;
use crate::support::server::DeadEnd;

/// What a script that catches it is told of an answer.
fn tells(name: &str, answer: Answer, options: &str, says: &str) {
    let server = answering(answer);
    let message = caught(&server, &format!("http.get(url .. '/p?secret', {{ {options} }})"));
    assert!(message.contains(says), "{name}: {message}");
    assert!(message.contains(&format!("http.get: http://{}/p: ", server.address())), "{name}: {message}");
    assert!(!message.contains("secret"), "{name}: {message}");
    assert!(!message.chars().any(char::is_control), "{name}: {message:?}");
}

#[test]
fn answers_that_are_no_http_are_errors_that_a_script_can_catch() {
    let mut many_headers = String::from("HTTP/1.1 200 OK\r\n");
    for index in 0..200 {
        let _ = write!(many_headers, "x-{index}: a\r\n");
    }
    for (name, answer, says) in [
        (
            "closed at once",
            Answer::default().then(Act::Close),
            "the connection broke: connection closed before message completed",
        ),
        ("closed in the head", raw("HTTP/1.1 200 OK\r\nx: ").then(Act::Close), "the connection broke"),
        (
            "closed in the body",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").then(Act::Close),
            "the connection broke: end of file before message length reached",
        ),
        (
            "closed in a chunk",
            raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nhalf").then(Act::Close),
            "the connection broke",
        ),
        (
            "reset",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").then(Act::Reset),
            "the connection broke",
        ),
        (
            "no HTTP",
            raw("SSH-2.0-OpenSSH_9.0\r\n").then(Act::Close),
            "the connection broke: invalid HTTP version parsed",
        ),
        (
            "terminal escapes",
            raw("HTTP/1.1 \x1b[31m OK\r\n\r\n").then(Act::Close),
            "the connection broke: invalid HTTP",
        ),
        (
            "two lengths",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
            "the connection broke: invalid content-length",
        ),
        (
            "a bad chunk",
            raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
            "the connection broke: ",
        ),
        (
            "a folded header",
            raw("HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n"),
            "the connection broke: invalid HTTP header parsed",
        ),
        ("many headers", raw(many_headers + "\r\n"), "the connection broke: message head is too large"),
        (
            "endless header",
            raw("HTTP/1.1 200 OK\r\nx: ").then(Act::Endless(vec![b'a'; 4096])),
            "the connection broke: message head is too large",
        ),
        (
            "endless headers",
            raw("HTTP/1.1 200 OK\r\n").then(Act::Endless(b"x: y\r\n".repeat(100))),
            "the connection broke: message head is too large",
        ),
        ("no gzip", plain(200, &[("content-encoding", "gzip")], "text"), "not the gzip that its header says"),
    ] {
        tells(name, answer, "", says);
    }
    // More than was promised is another message, and none of ours.
    let server = answering(raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhello").then(Act::Close));
    assert_eq!(local(&server, "return http.get(url).body"), Ok(json!("he")));

    let nobody = DeadEnd::new();
    let error = under(&["127.0.0.1:*"], &nobody.endpoint(), "return http.get(url)").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Script);
    assert!(error.message.ends_with("/v1: connection refused; is the server running there?"), "{error}");
}

/// The limits are on the same ways the request's own.
#[test]
fn what_goes_on_for_too_long_is_left() {
    let endless_chunks = Answer::head(200, &[]).then(Act::Endless(b"5\r\nhello\r\n".to_vec()));
    for (name, answer, options, says) in [
        (
            "too long by its length",
            raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"),
            "max_bytes = 98",
            "the answer's body is longer than 98 bytes; ask for less, or for more with max_bytes",
        ),
        (
            "too long by what comes",
            Answer::head(200, &[]).piece("a").piece("bc").end(),
            "max_bytes = 2",
            "longer than 2 bytes",
        ),
        ("endless body", endless_chunks, "max_bytes = 100000", "longer than 100000 bytes"),
        ("silence", Answer::silent(), "timeout = 0.1", "no whole answer within timeout = 0.1 s"),
        (
            "a slow body",
            Answer::head(200, &[]).piece("a").then(Act::Silence),
            "timeout = 0.2",
            "no whole answer within timeout = 0.2 s",
        ),
        (
            "endless interim answers",
            Answer::default().then(Act::Endless(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec())),
            "timeout = 0.3",
            "no whole answer within",
        ),
    ] {
        tells(name, answer, options, says);
    }
}

#[test]
fn bodies_are_unpacked_up_to_the_limit() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = gzip(&b"hello ".repeat(1000));
    let text = packed.clone();
    // A gigabyte of zeros, in members of 16 MiB.
    let bomb = gzip(&vec![0; 16 << 20]).repeat(64);
    let server = Server::answering_all(move |_, received| match received.line.as_str() {
        "GET /text" => plain(200, &[("content-encoding", "GZIP"), ("x", "y")], &text),
        "GET /cut" => plain(200, &[("content-encoding", "gzip")], &text[..text.len() - 4]),
        "GET /twice" => plain(200, &[("content-encoding", "gzip"), ("content-encoding", "gzip")], &text),
        "GET /other" => plain(200, &[("content-encoding", "br")], "as it came"),
        _ => plain(200, &[("content-encoding", "gzip")], &bomb),
    });
    let text = "local r = http.get(url .. '/text') return { #r.body, r.headers }";
    assert_eq!(local(&server, text), Ok(json!([6000, {"x": "y"}])));
    assert!(caught(&server, "http.get(url .. '/cut')").contains("not the gzip"));
    let short = caught(&server, "http.get(url .. '/text', { max_bytes = 5999 })");
    assert!(short.contains("longer than 5999 bytes"), "{short}");
    // What is packed otherwise comes as it is, and its header says so.
    let twice = "local r = http.get(url .. '/twice') return { #r.body, r.headers['content-encoding'] }";
    assert_eq!(local(&server, twice), Ok(json!([packed.len(), "gzip, gzip"])));
    let other = "local r = http.get(url .. '/other') return { r.body, r.headers['content-encoding'] }";
    assert_eq!(local(&server, other), Ok(json!(["as it came", "br"])));
    let bomb = caught(&server, "http.get(url .. '/bomb')");
    assert!(bomb.contains("longer than 8388608 bytes"), "{bomb}");
}
