//! Scripts and their sandbox.

mod isolate;
mod leftovers;
pub(crate) mod runtime;
mod script_tests;
#[cfg(unix)]
mod storm;
mod toolbox;
