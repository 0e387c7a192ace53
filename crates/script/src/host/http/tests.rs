//! DNS attacks: a malicious resolver and loopback servers that must not be reached.

use std::collections::VecDeque;
use std::io::{Error, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use deftool_lang::tool::ToolErrorKind;
use futures_util::FutureExt;
use futures_util::future::join_all;
use reqwest::Method;
use reqwest::header::HeaderMap;

use super::client::Clients;
use super::exchange::{HttpResponse, exchange};
use super::grants::NetGrants;
use super::request::{Limits, Request};
use super::target;
use crate::error::HostError;
use crate::io;

/// A server that sends the same response on each connection and closes it.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

fn serve(ip: &str, port: u16, answer: &str) -> Server {
    let listener = TcpListener::bind((ip, port)).unwrap();
    let server = Server { address: listener.local_addr().unwrap(), connections: Arc::default() };
    let (connections, answer) = (Arc::clone(&server.connections), answer.to_owned());
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            connections.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(socket.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    server
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello";

/// Returns clients and the number of their lookups. Each lookup returns the next of the address lists; the last list
/// repeats.
fn resolving(answers: &[&[&str]]) -> (Arc<Clients>, Arc<AtomicUsize>) {
    let read = |addresses: &&[&str]| addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    let answers: Mutex<VecDeque<Vec<IpAddr>>> = Mutex::new(answers.iter().map(read).collect());
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    let clients = Clients::new(Arc::new(move |name| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut answers = answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let answer = answer.ok_or_else(|| Error::other(format!("unknown host {name}")));
        std::future::ready(answer).boxed()
    }));
    (Arc::new(clients), lookups)
}

fn get(clients: &Arc<Clients>, granted: &[&str], url: &str) -> Result<HttpResponse, HostError> {
    get_at_once(clients, granted, url, 1).remove(0)
}

/// Sends `count` requests at a time.
fn get_at_once(
    clients: &Arc<Clients>,
    granted: &[&str],
    url: &str,
    count: usize,
) -> Vec<Result<HttpResponse, HostError>> {
    let grants = NetGrants::new(&granted.iter().map(|grant| String::from(*grant)).collect::<Vec<_>>());
    let send = |_| {
        let request = Request {
            method: Method::GET,
            url: target::parse(url).unwrap(),
            headers: HeaderMap::new(),
            body: None,
            limits: Limits { timeout: Some(Duration::from_secs(10)), bytes: 1000, redirects: 5 },
        };
        let (clients, grants) = (Arc::clone(clients), grants.clone());
        io::run(async move { exchange(&clients, &grants, request).await })
    };
    let all = join_all((0..count).map(send));
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(all)
}

/// A server that keeps connections open. It sends a response when `at_once` requests have arrived.
fn serve_at_once(at_once: usize) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server { address: listener.local_addr().unwrap(), connections: Arc::default() };
    let (connections, arrived) = (Arc::clone(&server.connections), Arc::new(Barrier::new(at_once)));
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            connections.fetch_add(1, Ordering::SeqCst);
            let arrived = Arc::clone(&arrived);
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while matches!(socket.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        arrived.wait();
                        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
                    }
                }
            });
        }
    });
    server
}

#[test]
fn a_name_that_resolves_to_a_private_address_is_refused_before_connecting() {
    let server = serve("127.0.0.1", 0, HELLO);
    let port = server.address.port();
    let url = format!("http://app.example:{port}/");
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["10.0.0.5"],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        // One of several addresses is sufficient, in any position.
        &["93.184.216.34", "127.0.0.1"],
    ] {
        let (clients, _) = resolving(&[addresses]);
        for granted in [&[format!("app.example:{port}")][..], &[String::from("*:*")]] {
            let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
            let error = get(&clients, &granted, &url).map(|answer| answer.status).unwrap_err();
            assert_eq!(error.kind, ToolErrorKind::Permission, "{addresses:?}: {error}");
            assert!(error.message.contains("app.example resolves to "), "{error}");
            assert!(error.message.contains(&format!(":allow (:net [\"app.example:{port}\" \"")), "{error}");
        }
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);

    let (clients, _) = resolving(&[&["127.0.0.1"]]);
    let granted = [format!("app.example:{port}"), format!("127.0.0.1:{port}")];
    let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
    let answer = get(&clients, &granted, &url).unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
}

#[test]
fn connections_use_the_checked_address() {
    let granted_server = serve("127.0.0.2", 0, HELLO);
    let port = granted_server.address.port();
    let other = serve("127.0.0.1", port, HELLO);
    let granted = [format!("app.example:{port}"), format!("127.0.0.2:{port}")];
    let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
    let url = format!("http://app.example:{port}/");
    // The name server returns another address after the first lookup.
    let (clients, lookups) = resolving(&[&["127.0.0.2"], &["127.0.0.1"]]);
    assert_eq!(get(&clients, &granted, &url).unwrap().body, b"hello");
    assert_eq!(lookups.load(Ordering::SeqCst), 1, "one lookup for each connection");
    let error = get(&clients, &granted, &url).map(|answer| answer.status).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert_eq!(other.connections.load(Ordering::SeqCst), 0);
    assert_eq!(granted_server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn the_name_of_a_redirect_is_resolved_and_checked_again() {
    let secret = serve("127.0.0.1", 0, HELLO);
    let secret_port = secret.address.port();
    let location = format!(
        "HTTP/1.1 302 Found\r\nconnection: close\r\ncontent-length: 0\r\nlocation: http://b.example:{secret_port}/\r\n\r\n"
    );
    let server = serve("127.0.0.2", 0, &location);
    let port = server.address.port();
    let granted = [format!("a.example:{port}"), format!("127.0.0.2:{port}"), String::from("b.example:*")];
    let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
    let (clients, lookups) = resolving(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let error = get(&clients, &granted, &format!("http://a.example:{port}/"))
        .map(|answer| answer.status)
        .unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert!(
        error.message.starts_with("after a redirect: b.example resolves to 127.0.0.1, a loopback address"),
        "{error}"
    );
    assert_eq!(lookups.load(Ordering::SeqCst), 2);
    assert_eq!(secret.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn a_name_that_cannot_be_resolved_is_a_script_error() {
    let (clients, lookups) = resolving(&[]);
    let error =
        get(&clients, &["app.example"], "http://app.example/p?q").map(|answer| answer.status).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Script);
    assert_eq!(
        error.message,
        "http://app.example/p: cannot resolve app.example: unknown host app.example; check the name and the network"
    );
    let (clients, _) = resolving(&[&[]]);
    let error =
        get(&clients, &["app.example"], "http://app.example/").map(|answer| answer.status).unwrap_err();
    assert!(error.message.contains("no addresses found"), "{error}");
    // A host without a grant is not looked up, and neither is `localhost`.
    assert!(get(&clients, &["app.example"], "http://b.example/").is_err());
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(get(&clients, &["localhost:*"], &format!("http://localhost:{nobody}/")).is_err());
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
}

#[test]
fn simultaneous_requests_reuse_their_connections() {
    const AT_ONCE: usize = 64;
    const ROUNDS: usize = 10;
    let server = serve_at_once(AT_ONCE);
    let (clients, _) = resolving(&[]);
    let host = server.address.to_string();
    for _ in 0..ROUNDS {
        for answer in get_at_once(&clients, &[&host], &format!("http://{host}/"), AT_ONCE) {
            assert_eq!(answer.unwrap().body, b"hello");
        }
    }
    // A connection may become idle after the next request, and is closed if the machine stalls for seconds.
    let opened = server.connections.load(Ordering::SeqCst);
    assert!((AT_ONCE..AT_ONCE * ROUNDS / 2).contains(&opened), "{opened} connections for {ROUNDS} rounds");
}
