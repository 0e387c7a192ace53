//! What `deftool-serve` shares with the commands: options, trust, messages, exit codes, and the workers of a project.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser};
use deftool_project::{LiveProject, find_root};
use deftool_record::Journal;
use deftool_worker::{Worker, WorkerState};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use super::outcome::{CliError, Exit, runtime};
use super::project::engine::{self, ScriptOptions};
use super::project::user::ProjectRoots;
use super::terminal::interrupt::Signals;
use super::terminal::output::{clean, eprint_line};
use super::worker::options::WorkerOptions;
use super::worker::{ClientWorkers, OpenedWorker, choose_worker, close_remote, eprint_errors};

/// The options of a program that serves the workers of a project.
#[derive(Debug, Args)]
pub struct ServeOptions {
    #[command(flatten)]
    worker: WorkerOptions,
    #[command(flatten)]
    scripts: ScriptOptions,
}

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

/// A future that is ready when a signal ends the program.
pub type Stop = BoxFuture<'static, ()>;

/// Time limit for blocked threads at the end.
const LAST_WORK: Duration = Duration::from_millis(100);

/// Parses the command line, and runs `serve` with the workers of the project until a signal arrives. Returns the exit code:
/// 2 if `serve` returns an error.
pub fn main<A, S>(journal: Arc<dyn Journal>, serve: impl FnOnce(A, Arc<Workers>, Stop) -> S) -> ExitCode
where
    A: Parser + AsRef<ServeOptions>,
    S: Future<Output = Result<(), String>>,
{
    super::program(|| {
        let arguments = A::parse();
        let served = engine::prepare(Some(arguments.as_ref().scripts.isolate))
            .and_then(|()| Workers::of_project(arguments.as_ref(), journal))
            .and_then(|workers| run(Arc::new(workers), |workers, stop| serve(arguments, workers, stop)));
        super::finish(served, false)
    })
}

fn run<S>(workers: Arc<Workers>, serve: impl FnOnce(Arc<Workers>, Stop) -> S) -> Result<Exit, CliError>
where
    S: Future<Output = Result<(), String>>,
{
    // A step is short, so passing it between threads would cost more than it gains. Scripts have threads of their own.
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        let stop = async move { signals.next().await }.boxed();
        let served = serve(Arc::clone(&workers), stop).await;
        workers.close().await;
        served.map_err(CliError::Usage)
    });
    runtime.shutdown_timeout(LAST_WORK);
    served.map(|()| Exit::Interrupted)
}

/// Writes a line to stderr, without hidden characters.
pub fn report(line: &str) {
    eprint_line(&clean(line));
}

/// The workers of a project. Each is opened once.
pub struct Workers {
    clients: ClientWorkers,
    opened: Mutex<HashMap<String, OpenedWorker>>,
}

impl Workers {
    fn of_project(options: &ServeOptions, journal: Arc<dyn Journal>) -> Result<Self, CliError> {
        let root = find_root(&options.worker.project.dirs()?.project)?;
        let mut project = LiveProject::open(&root, &root, None)?;
        if options.worker.user_tools {
            let roots = ProjectRoots::find(&root)?;
            // The user's own project has its tools already.
            if roots.project.is_some() {
                project = roots.add_user(project, &root, None);
            }
        }
        let project = Arc::new(project);
        eprint_errors(&project.current());
        let clients = ClientWorkers {
            options: options.worker.clone(),
            trusted: (root.clone(), false),
            root,
            project,
            scripts: engine::start(&options.scripts)?,
            trusts_all: options.scripts.trust,
            is_conversation: false,
            journal: Some(Box::new(move |_| Arc::clone(&journal))),
        };
        Ok(Self { clients, opened: Mutex::default() })
    }

    /// Opens the worker of `--worker`, or all workers of the project, and reports those that cannot be used.
    ///
    /// # Errors
    /// If none can be used.
    pub async fn open_all(&self) -> Result<(), String> {
        let project = self.clients.project.current();
        let mut names: Vec<Option<&str>> =
            project.load.workers.iter().map(|worker| Some(worker.name.value.as_str())).collect();
        if names.is_empty() || self.clients.options.worker.is_some() {
            names = vec![None];
        }
        let mut failures = Vec::new();
        for name in &names {
            if let Err(failure) = self.open(*name).await {
                failures.push(match name {
                    Some(name) if names.len() > 1 => format!("worker `{name}`: {failure}"),
                    _ => failure.to_string(),
                });
            }
        }
        if failures.len() == names.len() {
            return Err(failures.join("; "));
        }
        for failure in failures {
            report(&format!("warning: {failure}"));
        }
        Ok(())
    }

    /// Returns a worker, and opens it if it is not open. `None`: the worker of `--worker`, or the only one. A new worker is
    /// returned only if its model server answers.
    ///
    /// # Errors
    /// If the worker cannot be used.
    pub async fn open(&self, name: Option<&str>) -> Result<Worker, OpenFailure> {
        let named = name.or(self.clients.options.worker.as_deref());
        let spec = choose_worker(named, None, &self.clients.project.current())
            .map_err(|error| OpenFailure::Unknown(error.to_string()))?;
        let mut opened = self.opened.lock().await;
        if let Some(OpenedWorker { worker, .. }) = opened.get(&spec.name.value) {
            // A managed server that failed too often. Others are found out by the requests.
            if worker.state() == WorkerState::Failed {
                return Err(OpenFailure::Unavailable(worker.status().reason.unwrap_or_default()));
            }
            return Ok(worker.clone());
        }
        let key = spec.name.value.clone();
        let new = Box::pin(self.clients.open(spec, (Vec::new(), &self.clients.root)))
            .await
            .map_err(|error| OpenFailure::Unavailable(error.to_string()))?;
        if let Err(error) = new.worker.ready().await {
            close(new).await;
            let reason = error.reason.unwrap_or_default();
            let advice = "`deftool doctor` examines the server";
            return Err(OpenFailure::Unavailable(format!("{reason}; {advice}")));
        }
        let worker = new.worker.clone();
        opened.insert(key, new);
        Ok(worker)
    }

    async fn close(&self) {
        for (_, opened) in self.opened.lock().await.drain() {
            close(opened).await;
        }
    }
}

async fn close(opened: OpenedWorker) {
    opened.worker.stop();
    close_remote(opened.remote).await;
}
