//! End-to-end tests: the real binary, real files, real servers, and the crates together.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod commands;
mod editors;
mod language;
#[cfg(unix)]
mod managed;
mod real;
mod reports;
mod repository;
mod scripts;
mod support;
mod worker;
