//! Shared code of the tests.

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

/// Returns whether slow tests run in full, as in CI (`DEFTOOL_TESTS=full`). By default they run a sample.
pub(crate) fn is_full() -> bool {
    std::env::var("DEFTOOL_TESTS").is_ok_and(|tests| tests == "full")
}
