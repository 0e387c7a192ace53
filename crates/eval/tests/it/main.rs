//! Tests of the judge through its public API.

// Clippy does not treat helper functions outside of a `#[test]` as test code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod judge;
mod notation;
mod properties;
