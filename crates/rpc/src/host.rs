//! The data and functions that the host program provides.

use std::path::PathBuf;
use std::sync::Arc;

use deftool_lang::spec::WorkerSpec;
use deftool_project::{Generation, LiveProject};
use deftool_script::ScriptRunner;
use deftool_worker::{TrustSource, Worker};
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
}

/// Selects the worker with a name, or the default worker.
type ChooseWorker = dyn Fn(&Generation, Option<&str>) -> Result<WorkerSpec, String> + Send + Sync;

/// Connects a worker to its server.
type OpenWorker = dyn Fn(WorkerSpec) -> BoxFuture<'static, Result<OpenedWorker, String>> + Send + Sync;

/// A worker with its connections.
pub struct OpenedWorker {
    /// The worker.
    pub worker: Worker,
    /// Closes the connections of its tools. Called after the worker has ended.
    pub close: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send + Sync>,
}
