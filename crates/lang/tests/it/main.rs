//! The reader, the specs and the schemas as a Rust program uses them.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod strict;
mod syntax;
mod values;
mod worker_keys;
mod write;
