//! What several tests need.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(unix)]
pub(crate) mod cpu;
pub(crate) mod project;
pub(crate) mod server;
#[cfg(unix)]
pub(crate) mod storm;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;
pub(crate) mod validity;
pub(crate) mod watching;
