//! Replacement of `process` and `guard` on systems without process groups.

use std::convert::Infallible;
use std::sync::Arc;

use super::logs::Logs;
use super::plan::{GuardProgram, Plan, ProcessEvent, Termination};

/// A server process. Never constructed.
#[derive(Debug)]
pub(super) struct Process(Infallible);

impl Process {
    pub(super) async fn start(_: &Plan, _: &GuardProgram, _: Arc<Logs>) -> Result<Self, String> {
        Err(String::from("managed servers require Unix; start the server yourself and set `:endpoint`"))
    }

    pub(super) fn id(&self) -> Option<u32> {
        match self.0 {}
    }

    pub(super) async fn next_event(&mut self) -> ProcessEvent {
        match self.0 {}
    }

    pub(super) async fn stop(self) -> Termination {
        match self.0 {}
    }
}

/// Returns an error: guards need Unix.
///
/// # Errors
/// Always.
pub fn guard_server() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
