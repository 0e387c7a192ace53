//! Shared code of the tests.

// Errors of the environment fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod jsonrpc;
pub(crate) mod ledger;
pub(crate) mod lsp;
pub(crate) mod pages;
#[cfg(target_os = "linux")]
pub(crate) mod process;
pub(crate) mod project;
pub(crate) mod repository;
#[cfg(unix)]
pub(crate) mod storm;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;
pub(crate) mod watching;
