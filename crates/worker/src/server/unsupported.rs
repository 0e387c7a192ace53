//! Replacement of `process` on systems without process groups.

use std::convert::Infallible;
use std::sync::Arc;

use super::logs::Logs;
use super::plan::{Plan, ProcessEvent, Termination};

/// A server process. Never constructed.
#[derive(Debug)]
pub(super) struct Process(Infallible);

impl Process {
    pub(super) fn start(_: Plan, _: Arc<Logs>) -> Result<Self, String> {
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
