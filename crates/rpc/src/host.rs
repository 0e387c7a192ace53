//! The data and functions that the host program provides.

use std::path::PathBuf;
use std::sync::Arc;

use deftool_chat::Message;
use deftool_lang::spec::WorkerSpec;
use deftool_project::{Generation, LiveProject};
use deftool_script::ScriptRunner;
use deftool_worker::{SubmitRequest, TrustSource, Worker};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

/// The project to serve.
pub struct Host {
    /// The folder of the project.
    pub root: PathBuf,
    /// The project.
    pub project: Arc<LiveProject>,
    /// Changes whenever the project was reloaded, or could not be loaded.
    pub reloads: watch::Receiver<()>,
    /// Runs the scripts.
    pub scripts: Arc<ScriptRunner>,
    /// The permissions of the scripts.
    pub trust: Box<dyn TrustSource>,
    /// Selects a worker of a generation. The error is a message for the user.
    pub choose_worker: Box<ChooseWorker>,
    /// Connects a worker to its server. Called once for each worker that is used. The error is a message for the user.
    pub open_worker: Box<OpenWorker>,
    /// Returns the message of a prompt with files. The error is a message for the user.
    pub read_files: Box<ReadFiles>,
}

/// A worker of the project, or one of the user's own project.
#[derive(Debug, Clone)]
pub struct ChosenWorker {
    /// The worker.
    pub spec: WorkerSpec,
    /// Whether it is one of the user's own project.
    pub is_user: bool,
}

/// Selects the worker with a name, or the default worker.
type ChooseWorker = dyn Fn(&Generation, Option<&str>) -> Result<ChosenWorker, String> + Send + Sync;

/// Connects a worker to its server.
type OpenWorker = dyn Fn(ChosenWorker) -> BoxFuture<'static, Result<OpenedWorker, String>> + Send + Sync;

/// Returns the message of a prompt with files.
type ReadFiles = dyn Fn(String, &[PathBuf]) -> Result<Message, String> + Send + Sync;

/// Continues the request of the journal that has the content of a new one, in its worker. Returns its id and the number
/// of its earlier events; `None`: the journal has no such request. The error is a message for the user.
pub type ContinueRequest = dyn Fn(&SubmitRequest) -> Result<Option<(String, usize)>, String> + Send + Sync;

/// A worker with its connections.
pub struct OpenedWorker {
    /// The worker.
    pub worker: Worker,
    /// Continues the requests of the journal, if there is one.
    pub continue_request: Option<Arc<ContinueRequest>>,
    /// Closes the connections of its tools. Called after the worker has ended.
    pub close: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send + Sync>,
}
