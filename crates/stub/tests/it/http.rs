//! The stub over HTTP, with well-behaved and faulty clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use deftool_stub::{Answer, MAX_BODY, MAX_HEAD, Reply, Scenario, Stub};
use serde_json::json;

use deftool_test_support::client::{Client, ask, get, hello, post};

fn stub_without_steps() -> Stub {
    Stub::start(Scenario::without_steps()).unwrap()
}

#[test]
fn a_connection_serves_several_requests() {
    let stub = stub_without_steps();
    let mut client = Client::connect(stub.address());
    let keep = post(&hello(false)).replace("connection: close\r\n", "");
    for _ in 0..3 {
        client.send(&keep);
        client.read_until("\r\n0\r\n\r\n");
    }
    // Two requests in one write.
    client.send(format!("{keep}{}", post(&hello(false))));
    let (text, end) = client.read_to_end();
    assert_eq!((text.matches("HTTP/1.1 200 OK").count(), end), (2, None), "{text}");
    assert_eq!((stub.requests().len(), stub.connections()), (5, 1));
}

#[test]
fn chunked_bodies_and_expect_continue_are_supported() {
    let stub = stub_without_steps();
    let mut client = Client::connect(stub.address());
    let body = hello(false).to_string();
    let (one, two) = body.split_at(20);
    client.send(
        "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
    );
    client.read_until("HTTP/1.1 100 Continue\r\n\r\n");
    client.send(format!("{:x}\r\n{one}\r\n", one.len()));
    client.send(format!("{:x}\r\n{two}\r\n0\r\n\r\n", two.len()));
    let (text, _) = client.read_to_end();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert_eq!(stub.requests()[0].body, hello(false));
}

#[test]
fn invalid_requests_are_rejected_and_the_next_is_served() {
    let stub = stub_without_steps();
    let huge_head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(MAX_HEAD));
    let huge_body = format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n", MAX_BODY + 1);
    let cases: &[(&[u8], &str)] = &[
        (b"hello\r\n\r\n", "400"),
        (b"\0\0\0\0\r\n\r\n", "400"),
        (b"\xff\xfe / HTTP/1.1\r\n\r\n", "400"),
        (b"GET / HTTP/9\r\n\r\n", "400"),
        (b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n", "400"),
        (b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n", "400"),
        (b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "400"),
        (huge_body.as_bytes(), "413"),
        (b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n", "413"),
        (huge_head.as_bytes(), "431"),
    ];
    for (request, status) in cases {
        let mut client = Client::connect(stub.address());
        client.send(request);
        let (text, _) = client.read_to_end();
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]);
        assert_eq!(text.get(9..12), Some(*status), "{shown}: {text}");
    }
    // Bodies that are not a request.
    for (body, status) in [("{", 400), ("[]", 400), ("null", 400), ("\"x\"", 400), ("{}", 200)] {
        let length = body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        assert_eq!(deftool_test_support::client::exchange(stub.address(), &head).0, status, "{body}");
    }
    for odd in [
        json!({"messages": 5, "tools": {"a": []}, "stream": "yes", "model": ["x"], "stream_options": []}),
        json!({"messages": [5, null, {"role": 1, "content": {"a": 1}}], "tools": [null, {"function": {"name": 1}}]}),
        json!({"messages": [{}], "model": "index-missing", "tools": [{"function": {"parameters": {"required": 1}}}]}),
        json!({"model": "arguments-null", "tools": [{"function": {"name": "f", "parameters": {"$ref": "#"}}}]}),
    ] {
        assert_eq!(ask(stub.address(), &odd).0, 200, "{odd}");
    }
    assert_eq!(get(stub.address(), "/health").0, 200);
}

#[test]
fn requests_of_web_pages_are_refused() {
    let stub = stub_without_steps();
    let port = stub.address().port();
    for (headers, status) in [
        (format!("Host: 127.0.0.1:{port}"), 200),
        (format!("Host: localhost:{port}"), 200),
        // A name that a web page made resolve to this machine.
        (format!("Host: rebound.example:{port}"), 403),
        (format!("Host: localhost\r\nHost: rebound.example:{port}"), 403),
        (format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}"), 403),
    ] {
        let request = format!("GET /v1/models HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
        let (found, body) = deftool_test_support::client::exchange(stub.address(), &request);
        assert_eq!(found, status, "{headers}: {body}");
    }
    assert_eq!(stub.requests().len(), 2);
    // The names of this machine are not known.
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let stub = Stub::start_at(everywhere, Scenario::without_steps(), |_, _, _| {}).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, stub.address().port()));
    let request = "GET /v1/models HTTP/1.1\r\nHost: machine.example\r\nConnection: close\r\n\r\n";
    assert_eq!(deftool_test_support::client::exchange(address, request).0, 200);
}

#[test]
fn disconnected_and_idle_clients_do_not_block_others() {
    let stub =
        Stub::start(Scenario::replies([Reply::new().text("one "), Reply::new().text("two ")])).unwrap();
    let mut idle: Vec<Client> = (0..50).map(|_| Client::connect(stub.address())).collect();
    for (number, client) in idle.iter_mut().enumerate() {
        client.send(&post(&hello(true))[..number]);
    }
    drop(idle.split_off(25));
    assert_eq!(ask(stub.address(), &hello(false)).0, 200);
    assert_eq!(ask(stub.address(), &hello(false)).0, 200);
}

#[test]
fn faults_reset_or_close_the_connection() {
    let stub = Stub::start(Scenario::without_steps()).unwrap();
    let ends = |model: &str| {
        let mut client = Client::connect(stub.address());
        let mut body = hello(true);
        body["model"] = json!(model);
        client.send(post(&body));
        client.read_to_end()
    };
    let (text, end) = ends("rst-mid-stream");
    assert!(text.contains("This ") && end == Some(std::io::ErrorKind::ConnectionReset), "{end:?}: {text}");
    let (text, end) = ends("fin-mid-stream");
    assert!(text.contains("This ") && !text.ends_with("0\r\n\r\n") && end.is_none(), "{end:?}: {text}");
    assert_eq!(ends("fin-before-head"), (String::new(), None));
    assert_eq!(ends("rst-before-head"), (String::new(), Some(std::io::ErrorKind::ConnectionReset)));
}

#[test]
fn three_hundred_streams_are_served_concurrently() {
    let reply = Reply::new().text("word ").wait(Duration::from_secs(3600));
    let stub = Stub::answering("127.0.0.1:0".parse().unwrap(), move |request| reply.answer(request)).unwrap();
    let mut clients: Vec<Client> = (0..300)
        .map(|_| {
            let mut client = Client::connect(stub.address());
            client.send(post(&hello(true)));
            client
        })
        .collect();
    // No stream ends before all of them have begun.
    for client in &mut clients {
        client.read_until("word ");
    }
    assert_eq!(stub.connections(), 300);
}

#[test]
fn an_endless_answer_stops_when_the_client_disconnects() {
    let endless = Answer::stream().then(deftool_stub::Act::Endless(b"3\r\n:\n\n\r\n".to_vec()));
    let stub = Stub::answering("127.0.0.1:0".parse().unwrap(), move |_| endless.clone()).unwrap();
    let mut client = Client::connect(stub.address());
    client.send(post(&hello(true)));
    client.read_until(":\n\n");
    drop(client);
    assert!(stub.wait_until(Duration::from_secs(20), |stub| !stub.disconnects().is_empty()));
}
