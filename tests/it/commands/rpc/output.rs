//! How the server reads from and writes to a client: how often, with how many open requests, and its memory.

use std::io::Write;

use deftool_test_support::server::{Act, Answer, Server, finish};
use serde_json::json;

use super::client::{Client, error_of};
use super::project;
use crate::support::jsonrpc::framed;
use crate::support::process::{peak_memory, write_calls};

/// Counts system calls instead of time: a client of a thousand streams reads each token.
#[test]
fn events_that_are_ready_are_written_together() {
    const DELTAS: u64 = 2_000;
    let reply = (0..DELTAS).fold(Answer::stream(), |reply, number| reply.delta(&format!(" {number}")));
    let server = Server::script([reply.chunk(&finish("stop")).done().end()]);
    let project = project();
    let mut client = Client::start(&project, &["--trust", "--endpoint", &server.endpoint()]);
    let request = client.request("submit", json!({"prompt": "Count."}));
    client.request("result", request.clone());
    let process = client.connection.server.id();
    let before = write_calls(process);
    let events = client.send("events", request);
    let mut text = String::new();
    let mut received = 0;
    let response = loop {
        let message = client.connection.receive().unwrap();
        if message["id"] == events {
            break message;
        }
        assert_eq!(message["params"]["index"], received);
        received += 1;
        let event = &message["params"]["event"];
        if event["type"] == "text" {
            text += event["text"].as_str().unwrap();
        }
    };
    let expected = (0..DELTAS).map(|number| format!(" {number}")).collect::<Vec<_>>().concat();
    assert_eq!(response["result"]["count"], received);
    assert!(text == expected, "{text}");
    let calls = write_calls(process) - before;
    assert!(received > DELTAS && calls < received / 20, "{received} events in {calls} write calls");
    client.shut_down();
}

/// A request that waits for a model is cheap. One that runs a tool is not.
#[test]
fn many_requests_can_wait_for_a_model() {
    const OPEN: usize = 4_096;
    let server = Server::script([Answer::stream().delta("Hm").then(Act::Silence)]);
    let project = project();
    let mut client = Client::start(&project, &["--trust", "--endpoint", &server.endpoint()]);
    let request = client.request("submit", json!({"prompt": "Think."}));
    for _ in 0..OPEN - 1 {
        client.send("result", request.clone());
    }
    client.request("list", json!({}));
    let last = client.send("result", request.clone());
    let error = client.error("list", json!({}));
    assert_eq!(error, format!("-32803 too many open requests; wait for one of {OPEN} to finish"));
    client.connection.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": last}}));
    assert_eq!(error_of(&client.response(last)), "-32800 canceled");
    // The others end with their request.
    let cancel = client.send("cancel", request);
    let mut ended = 0;
    while ended < OPEN {
        let message = client.connection.receive().unwrap();
        assert!(message["id"] == cancel || message["result"]["outcome"]["state"] == "canceled", "{message}");
        ended += 1;
    }
    client.shut_down();
}

/// The memory of the server is bounded, whatever a client sends, and a client that does not read loses nothing.
#[test]
fn memory_is_bounded() {
    const MIB: u64 = 1024;
    /// The answers have 40 MB.
    const REQUESTS: usize = 2_000;
    let project = project();
    let long = "x".repeat(20_000);
    project.write("specs/long.eld", format!("(deftool :name \"long\" :description \"{long}\" :args ())"));
    project.write("scripts/long.lua", "return function() end\n");
    let mut client = Client::start(&project, &[]);
    client.request("list", json!({}));
    let server = client.connection.server.id();
    let peak = || peak_memory(server);
    let before = peak();
    let length = 100_000_000;
    client.connection.write(format!("Content-Length: {length}\r\n\r\n").as_bytes());
    for _ in 0..length / 1_000_000 {
        client.connection.write(&vec![b' '; 1_000_000]);
    }
    assert_eq!(error_of(&client.receive()), "-32600 message ignored: larger than 32 MiB");
    assert!(peak() - before < 10 * MIB, "{} kB", peak() - before);
    let mut writer = client.connection.writer();
    let sender = std::thread::spawn(move || {
        for id in 0..REQUESTS {
            writer.write_all(&framed(&json!({"jsonrpc": "2.0", "id": id, "method": "list"}))).unwrap();
        }
        writer
    });
    let (mut answers, mut refused) = (0, 0);
    while answers < REQUESTS {
        let message = client.connection.receive().unwrap();
        refused += usize::from(message.get("error").is_some());
        answers += 1;
        if answers == 1 {
            assert!(peak() - before < 20 * MIB, "{} kB", peak() - before);
        }
    }
    assert!(refused < answers);
    // The server ends with its input.
    let writer = sender.join().unwrap();
    assert!(peak() - before < 20 * MIB, "{} kB", peak() - before);
    drop(writer);
    assert!(client.connection.disconnect().success());
}
