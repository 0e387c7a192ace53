//! The chat protocols, calls written as text, and the request machine.

// Helpers outside of `#[test]` functions are test code, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fallback;
mod request;
mod wire;
