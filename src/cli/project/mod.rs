//! The project of a command: its folder, inputs, trust and script runner.

pub(in crate::cli) mod analyzer;
pub(in crate::cli) mod engine;
pub(in crate::cli) mod generated;
pub(in crate::cli) mod inputs;
pub(in crate::cli) mod outputs;
pub(in crate::cli) mod permissions;
pub(in crate::cli) mod preview;
pub(in crate::cli) mod programs;
pub(in crate::cli) mod rerun;
pub(in crate::cli) mod revision;
pub(in crate::cli) mod script_log;
pub(in crate::cli) mod trust;
