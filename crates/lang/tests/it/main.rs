//! Tests of the reader, the specs and the schemas through the public API.

// Clippy does not treat helper functions outside of a `#[test]` as test code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod command_code;
mod fold;
mod forms;
mod reference;
mod repair;
mod strict;
mod syntax;
mod values;
mod worker_keys;
mod write;
