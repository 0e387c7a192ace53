//! The stub server over HTTP, and the scenario language.

// Helpers outside of `#[test]` functions are test code, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http;
mod language;
mod messages;
mod responses;

use deftool_stub::{Stub, read};
use serde_json::Value;

/// Starts a stub with this scenario.
fn stub(scenario: &str) -> Stub {
    let open = |_: &str| Ok(Vec::new());
    Stub::start(read("s.eld", scenario, &open).unwrap().remove(0)).unwrap()
}

/// Parses the events of a stream. The name of each event must be its type.
fn events(stream: &Value) -> Vec<Value> {
    let blocks = stream.as_str().unwrap().split_terminator("\n\n");
    let read = |block: &str| {
        let (name, data) = block.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name, format!("event: {}", event["type"].as_str().unwrap()));
        event
    };
    blocks.map(read).collect()
}
