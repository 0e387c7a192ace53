//! deftool from the outside. One binary, one file a room of the house, and the real server last.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod chat;
mod damage;
mod docs;
mod examples;
mod house;
mod inputs;
mod lang;
mod live;
mod llama_cpp;
mod lost;
mod readme;
mod real;
mod record;
mod request;
mod rules;
mod run;
mod script;
mod strict;
mod support;
mod syntax;
mod targets;
mod values;
mod worker;
