//! Names that lead where their owner likes: a resolver that lies, and loopback servers that must not be reached.

use std::collections::VecDeque;
use std::io::{Error, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use reqwest::Method;
use reqwest::header::HeaderMap;

use super::client::Clients;
use super::exchange::{Answer, exchange};
use super::grants::Grants;
use super::request::{Limits, Request};
use super::target;
use crate::script::error::HostError;
use crate::script::io;
use crate::tool::ToolErrorKind;

/// A server that gives one answer to each connection and closes it.
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

/// Clients whose names lead to these addresses, one list after the other and the last one again and again; and how
/// often they asked.
fn resolving(answers: &[&[&str]]) -> (Arc<Clients>, Arc<AtomicUsize>) {
    let read = |addresses: &&[&str]| addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    let answers: Mutex<VecDeque<Vec<IpAddr>>> = Mutex::new(answers.iter().map(read).collect());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let clients = Clients::new(Arc::new(move |name| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut answers = answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let answer = answer.ok_or_else(|| Error::other(format!("nobody knows {name}")));
        std::future::ready(answer).boxed()
    }));
    (Arc::new(clients), asked)
}

fn get(clients: &Arc<Clients>, granted: &[&str], url: &str) -> Result<Answer, HostError> {
    let grants = Grants::new(&granted.iter().map(|grant| String::from(*grant)).collect::<Vec<_>>());
    let request = Request {
        method: Method::GET,
        url: target::parse(url).unwrap(),
        headers: HeaderMap::new(),
        body: None,
        limits: Limits { timeout: Some(Duration::from_secs(10)), bytes: 1000, redirects: 5 },
    };
    let clients = Arc::clone(clients);
    let work = io::run(async move { exchange(&clients, &grants, request).await });
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_name_that_leads_to_a_private_address_is_refused_before_anything_is_sent() {
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
        // One of several is enough, wherever it stands.
        &["93.184.216.34", "127.0.0.1"],
    ] {
        let (clients, _) = resolving(&[addresses]);
        for granted in [&[format!("app.example:{port}")][..], &[String::from("*:*")]] {
            let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
            let error = get(&clients, &granted, &url).map(|answer| answer.status).unwrap_err();
            assert_eq!(error.kind, ToolErrorKind::Permission, "{addresses:?}: {error}");
            assert!(error.message.contains("app.example leads to "), "{error}");
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
fn what_was_checked_is_what_is_connected_to() {
    let granted_server = serve("127.0.0.2", 0, HELLO);
    let port = granted_server.address.port();
    let other = serve("127.0.0.1", port, HELLO);
    let granted = [format!("app.example:{port}"), format!("127.0.0.2:{port}")];
    let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
    let url = format!("http://app.example:{port}/");
    // The name server changes its mind after the first answer.
    let (clients, asked) = resolving(&[&["127.0.0.2"], &["127.0.0.1"]]);
    assert_eq!(get(&clients, &granted, &url).unwrap().body, b"hello");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "a name is asked for once a connection");
    let error = get(&clients, &granted, &url).map(|answer| answer.status).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert_eq!(other.connections.load(Ordering::SeqCst), 0);
    assert_eq!(granted_server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_redirect_to_a_name_is_resolved_and_judged_anew() {
    let secret = serve("127.0.0.1", 0, HELLO);
    let secret_port = secret.address.port();
    let location = format!(
        "HTTP/1.1 302 Found\r\nconnection: close\r\ncontent-length: 0\r\nlocation: http://b.example:{secret_port}/\r\n\r\n"
    );
    let server = serve("127.0.0.2", 0, &location);
    let port = server.address.port();
    let granted = [format!("a.example:{port}"), format!("127.0.0.2:{port}"), String::from("b.example:*")];
    let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
    let (clients, asked) = resolving(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let error = get(&clients, &granted, &format!("http://a.example:{port}/"))
        .map(|answer| answer.status)
        .unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert!(
        error.message.starts_with("after a redirect: b.example leads to 127.0.0.1, a loopback address"),
        "{error}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(secret.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn names_that_lead_nowhere_are_failures_of_the_world() {
    let (clients, asked) = resolving(&[]);
    let error =
        get(&clients, &["app.example"], "http://app.example/p?q").map(|answer| answer.status).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Script);
    assert_eq!(
        error.message,
        "http://app.example/p: the name app.example cannot be resolved: nobody knows app.example; is it spelled right, \
         and is the network there?"
    );
    let (clients, _) = resolving(&[&[]]);
    let error =
        get(&clients, &["app.example"], "http://app.example/").map(|answer| answer.status).unwrap_err();
    assert!(error.message.contains("it has no address"), "{error}");
    // A host that is not granted is not even looked up, and the machine itself never is.
    assert!(get(&clients, &["app.example"], "http://b.example/").is_err());
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(get(&clients, &["localhost:*"], &format!("http://localhost:{nobody}/")).is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
