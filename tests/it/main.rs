//! deftool from the outside. One binary, one file a room of the house, and the real server last.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod approvals;
mod bench_command;
mod bios;
mod chat;
mod chat_command;
mod check_watch;
mod ci;
mod damage;
mod docs;
mod doctor;
mod examples;
mod fallback;
mod findings;
mod fix;
mod fmt;
mod fuzz_command;
mod house;
mod import;
mod inputs;
mod isolate;
mod lang;
mod library;
mod live;
mod llama_cpp;
mod lost;
mod managed;
mod readme;
mod real;
mod record;
mod replay_command;
mod report;
mod request;
mod rules;
mod run;
mod script;
mod script_tests;
mod simulation;
#[cfg(unix)]
mod storm;
mod strict;
mod stub;
mod support;
mod syntax;
mod targets;
mod terminal;
mod test_command;
mod toolbox;
mod trust;
mod types;
mod values;
mod worker;
mod worker_rules;
mod write;
