//! deftool from the outside. One binary, one file a room of the house, and the real server last.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod commands;
mod language;
mod real;
mod repository;
mod scripts;
mod support;
mod worker;
