//! The reads and writes of `deftool mcp` for a call. Unlike times, they are the same on a busy machine.

#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::mcp::start_http;
use crate::support::project::{Project, command_in};

/// Calls in a measurement.
const CALLS: u32 = 64;

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/tools.eld", "(deftool :name \"a\" :description \"Answer.\" :args ())");
    project.write("scripts/a.lua", "return function() return \"done\" end\n");
    project
}

fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn call(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "a", "arguments": {}}})
}

/// The reads and writes of a process, also those that wake its threads. `recv` and `send` are not among them.
fn operations(id: u32) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{id}/io")).unwrap();
    let counts = counts.lines().filter_map(|line| line.strip_prefix("sysc")?.split_once(": "));
    counts.map(|(_, count)| count.parse::<u64>().unwrap()).sum()
}

/// Maximum number of measurements. Those after the first that is low enough are not made.
const MEASUREMENTS: u32 = 400;

/// Checks the operations of [`CALLS`] calls. The least of some measurements counts: the first call starts threads, and
/// on a busy machine, threads that are interrupted are woken more often.
#[track_caller]
fn assert_operations(id: u32, mut calls: impl FnMut(), most: u32) {
    let mut measured = (0..MEASUREMENTS).map(|_| {
        let before = operations(id);
        calls();
        operations(id) - before
    });
    assert!(measured.any(|operations| operations <= u64::from(most)), "more than {most} for {CALLS} calls");
}

#[test]
fn a_call_on_stdin_is_one_read_one_write_and_one_wake() {
    let project = project();
    let mut command = command_in(&project.path(""), &["mcp"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut receive = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.contains("\"result\""), "{line}");
    };
    writeln!(stdin, "{}", initialize()).unwrap();
    receive();
    writeln!(stdin, "{}", initialized()).unwrap();
    let in_turn = || {
        for id in 1..=CALLS {
            writeln!(stdin, "{}", call(id)).unwrap();
            receive();
        }
    };
    assert_operations(child.id(), in_turn, 7 * CALLS / 2);
    let together = || {
        let mut calls = String::new();
        (1..=CALLS).for_each(|id| writeln!(calls, "{}", call(id)).unwrap());
        stdin.write_all(calls.as_bytes()).unwrap();
        (1..=CALLS).for_each(|_| receive());
    };
    assert_operations(child.id(), together, 2 * CALLS);
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Sends a message on a kept connection. Returns the head of the reply and the number of reads until its end.
fn post(stream: &mut TcpStream, session: &str, message: &Value) -> (String, u32) {
    let message = message.to_string();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\n";
    let request = format!("{head}{session}Content-Length: {}\r\n\r\n{message}", message.len());
    stream.write_all(request.as_bytes()).unwrap();
    let (mut reply, mut part) = (String::new(), [0; 4096]);
    for reads in 1.. {
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "{reply}");
        reply += std::str::from_utf8(&part[..length]).unwrap();
        let Some((head, body)) = reply.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.map_or(body.ends_with("0\r\n\r\n"), |length| body.len() == length.parse::<usize>().unwrap())
        {
            return (head.to_owned(), reads);
        }
    }
    unreachable!("the loop has no end")
}

#[test]
fn a_reply_over_http_is_one_write() {
    let project = project();
    let (_server, url) = start_http(&project, &[]);
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let (head, _) = post(&mut stream, "", &initialize());
    let session = head.lines().find(|line| line.starts_with("mcp-session-id: ")).unwrap();
    let session = format!("{session}\r\n");
    post(&mut stream, &session, &initialized());
    let mut whole = 0;
    for id in 1..=5 * CALLS {
        let (head, reads) = post(&mut stream, &session, &call(id));
        // The reply of a call that takes longer than usual is streamed.
        if head.contains("\r\ncontent-length: ") {
            assert_eq!(reads, 1, "{head}");
            whole += 1;
        }
    }
    assert!(whole > 0, "no reply has a length");
}
