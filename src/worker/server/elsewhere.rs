//! In place of processes and their guards where there are no groups of processes to end.

use std::convert::Infallible;
use std::sync::Arc;

use super::logs::Logs;
use super::plan::{Ending, GuardProgram, News, Plan};

/// A server that is never started.
#[derive(Debug)]
pub(super) struct Process(Infallible);

impl Process {
    pub(super) async fn start(_: &Plan, _: &GuardProgram, _: Arc<Logs>) -> Result<Self, String> {
        Err(String::from("managed servers need Unix; start the server yourself and give its :endpoint"))
    }

    pub(super) fn id(&self) -> Option<u32> {
        match self.0 {}
    }

    pub(super) async fn news(&mut self) -> News {
        match self.0 {}
    }

    pub(super) async fn stop(self) -> Ending {
        match self.0 {}
    }
}

/// Guards nothing.
///
/// # Errors
/// Always.
pub fn guard_server() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
