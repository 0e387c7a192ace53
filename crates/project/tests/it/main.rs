//! Projects as a Rust program uses them.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod live;
