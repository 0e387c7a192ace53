//! The stub server over HTTP, and the scenario language.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http;
mod language;
mod responses;
