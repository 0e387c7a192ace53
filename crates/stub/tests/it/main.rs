//! The stub server over HTTP, and the scenario language.

// Helpers outside of `#[test]` functions are test code, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http;
mod language;
mod messages;
mod responses;
