//! Code that the tests of several crates share.

// Errors of the environment fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

use std::io::Write;

pub mod client;
#[cfg(unix)]
pub mod cpu;
pub mod markdown;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "server")]
pub mod server;
pub mod validity;

/// Time after which a test says that what it waits for does not happen. Long, because builds and model servers may run
/// beside it.
pub const HANG_LIMIT: std::time::Duration = std::time::Duration::from_secs(300);

/// Returns whether a test can use a program that only CI installs. If not, prints that the test is skipped: `.ci/run`
/// counts these lines. `variable`: the environment variable that CI sets to `required`.
///
/// # Panics
/// If it is required and not there.
pub fn can_use(what: &str, is_there: bool, variable: &str, installer: &str) -> bool {
    if !is_there {
        let is_required = std::env::var(variable).as_deref() == Ok("required");
        assert!(!is_required, "{what} is required and not there: run {installer}");
        // Directly, because the test harness captures the output of the macros.
        let _ = writeln!(std::io::stderr(), "skipped: no {what}; {installer} installs it");
    }
    is_there
}

/// Whether children ignore SIGHUP, as under `nohup`.
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

/// Returns whether slow tests run in full, as in `.ci/run-extended` (`DEFTOOL_TESTS=full`). By default they run a sample.
pub fn is_full() -> bool {
    std::env::var("DEFTOOL_TESTS").is_ok_and(|tests| tests == "full")
}

/// Returns the step through the cases of a slow test: 1 in full, otherwise `reduced`.
pub fn step(reduced: usize) -> usize {
    if is_full() { 1 } else { reduced }
}
