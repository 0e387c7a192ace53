//! The data and functions that the host program provides.

use std::sync::Arc;

use deftool_worker::Worker;
use futures_util::future::BoxFuture;

use super::bridge::RestateJournal;

/// The data and functions that the host program provides for the services.
pub struct Host {
    /// Opens a worker whose journal is `journal`. Called each time a request begins or continues in this process.
    pub open_worker: OpenWorker,
    /// The journal of the workers.
    pub journal: Arc<RestateJournal>,
}

/// Opens the worker of a name, or the only worker of the project.
pub type OpenWorker =
    Box<dyn Fn(Option<&str>) -> BoxFuture<'static, Result<Worker, OpenFailure>> + Send + Sync>;

/// The reason why a worker cannot be used, for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenFailure {
    /// The project has no such worker.
    #[error("{0}")]
    Unknown(String),
    /// The worker may be usable later.
    #[error("{0}")]
    Unavailable(String),
}
