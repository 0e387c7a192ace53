//! Tests of the public API of projects.

// Clippy does not count helpers outside of `#[test]` functions as test code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod live;
