//! The data and functions that the host program provides.

use std::path::PathBuf;
use std::sync::Arc;

use deftool_lang::spec::WorkerSpec;
use deftool_project::{Generation, LiveProject};
use deftool_script::{ScriptEvent, ScriptRunner};
use deftool_worker::{TrustSource, Worker};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

/// Maximum number of log lines and progress reports that wait for a slow client. More are dropped.
const MAX_EVENTS: usize = 1024;

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

/// The queue of the log lines and the progress of scripts.
pub struct ScriptEvents {
    pub(crate) sender: mpsc::Sender<Queued>,
    pub(crate) receiver: mpsc::Receiver<Queued>,
}

/// An element of the queue.
pub(crate) enum Queued {
    Event(ScriptEvent),
    /// Answered when all earlier events were sent to the client.
    Flush(oneshot::Sender<()>),
}

/// Creates a queue for the events of scripts. The function adds an event without blocking.
pub fn script_events() -> (impl Fn(ScriptEvent) + Send + Sync, ScriptEvents) {
    let (sender, receiver) = mpsc::channel(MAX_EVENTS);
    let queue = sender.clone();
    let send = move |event| {
        if let Err(TrySendError::Full(_)) = queue.try_send(Queued::Event(event)) {
            tracing::warn!("dropped an event of a script: the client does not read");
        }
    };
    (send, ScriptEvents { sender, receiver })
}
