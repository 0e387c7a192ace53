//! The jobs that `benches/peers/run` compares with other programs: `cargo bench --bench peer`.
//! Jobs: `validate COUNT SCHEMA ARGUMENTS`, `parse COUNT SCHEMA ARGUMENTS`.
//!
//! `validate` validates parsed arguments, `parse` also parses their JSON text. `streams URL COUNT SECONDS` reads as many replies at once, and `turns URL COUNT` is one request with as
//! many turns.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used)]

#[path = "load/tools.rs"]
mod tools;

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{FinalState, RunConfig};
use deftool_lang::schema::ArgumentValidator;
use deftool_worker::{HttpTransport, SubmitRequest, Worker, WorkerConfig};
use futures_util::future::join_all;
use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap();
    match arguments[..] {
        // `cargo bench` without a filter.
        [] => {}
        ["validate", count, schema, text] => validate(number(count), schema, text, false),
        ["parse", count, schema, text] => validate(number(count), schema, text, true),
        ["streams", url, count, seconds] => submit(url, number(count), &format!("stream peer {seconds}"), 1),
        ["turns", url, count] => submit(url, 1, count, number(count)),
        _ => panic!("unknown job: {arguments:?}"),
    }
}

fn validate(count: usize, schema: &str, arguments: &str, parses: bool) {
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = ArgumentValidator::compile("tool", &schema).unwrap();
    let text = fs::read_to_string(arguments).unwrap();
    let parsed: Value = serde_json::from_str(&text).unwrap();
    for _ in 0..count {
        if parses {
            let value: Value = serde_json::from_str(black_box(&text)).unwrap();
            assert!(validator.is_valid(&value));
        } else {
            assert!(validator.is_valid(black_box(&parsed)));
        }
    }
}

/// Submits `count` requests with the same prompt at once, and reads their events.
fn submit(url: &str, count: usize, prompt: &str, turns: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let run = RunConfig {
            model: String::from("stub"),
            tool_budget: u32::try_from(turns).unwrap(),
            ..RunConfig::default()
        };
        let config = WorkerConfig { slots: count.max(1), run, ..WorkerConfig::default() };
        let transport = HttpTransport::new(url, None, Duration::from_secs(3)).unwrap();
        let worker = Worker::start(config, tools::toolbox(), Arc::new(transport));
        let ids: Vec<String> =
            (0..count).map(|_| worker.submit(SubmitRequest::prompt(prompt)).unwrap()).collect();
        join_all(ids.iter().map(|id| async {
            let mut events = worker.events(id, 0).unwrap();
            while events.next().await.is_some() {}
            let outcome = worker.result(id).unwrap();
            assert_eq!(outcome.state, FinalState::Completed, "{outcome:?}");
        }))
        .await;
    });
}
