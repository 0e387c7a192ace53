//! The terminal: output, input, signals.

pub(in crate::cli) mod diff;
pub(in crate::cli) mod input;
pub(in crate::cli) mod interrupt;
pub(in crate::cli) mod output;
pub(in crate::cli) mod spinner;
pub(in crate::cli) mod stdin;
pub(in crate::cli) mod stdio;
pub(in crate::cli) mod width;
