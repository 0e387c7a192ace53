//! `deftool serve`: runs the workers of the project on Restate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use deftool_durable::restate::{Host, OpenFailure, RestateJournal, serve};
use deftool_project::{LiveProject, find_root};
use deftool_worker::Worker;
use futures_util::FutureExt;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::inputs::command_dirs;
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::eprint_line;
use crate::cli::worker::options::WorkerOptions;
use crate::cli::worker::{ClientWorkers, OpenedWorker, choose_worker, close_remote, eprint_errors};

#[cfg(feature = "restate")]
#[derive(Debug, Args)]
#[command(after_help = "\
Restate calls this command over HTTP and stores each step of a request, so that another machine can continue it.
docs/scale-out.md describes the set-up.

Examples:
  deftool serve --durable restate -C my-agent
  deftool serve --durable restate --listen 0.0.0.0:9080 -C my-agent --trust")]
pub(in crate::cli) struct ServeOptions {
    /// The engine that stores the requests
    #[arg(long, value_enum)]
    pub(in crate::cli) durable: DurableEngine,
    /// Address on which Restate reaches this command
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub(in crate::cli) listen: String,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// The engines of `serve --durable`.
#[cfg(feature = "restate")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum DurableEngine {
    /// Restate
    Restate,
}

/// Time limit for blocked threads at the end.
const LAST_WORK: Duration = Duration::from_millis(100);

pub(in crate::cli) fn run(options: &ServeOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.worker.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let project = Arc::new(LiveProject::open(&root, &root, None)?);
    eprint_errors(&project.current());
    let journal = Arc::new(RestateJournal::default());
    let stored = Arc::clone(&journal);
    let workers = Arc::new(Workers {
        clients: ClientWorkers {
            options: options.worker.clone(),
            root,
            project,
            scripts: engine::start(&options.scripts)?,
            trusts_all: options.scripts.trust,
            reports_errors: false,
            journal: Some(Box::new(move |_| Arc::clone(&stored) as Arc<_>)),
        },
        opened: Mutex::default(),
    });
    let opening = Arc::clone(&workers);
    let open_worker = move |name: Option<&str>| {
        let (workers, name) = (Arc::clone(&opening), name.map(str::to_owned));
        async move { workers.open(name.as_deref()).await }.boxed()
    };
    let host = Host { open_worker: Box::new(open_worker), journal };
    // A step is short, so passing it between threads would cost more than it gains. Scripts have threads of their own.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(&options.listen)
            .await
            .map_err(|error| CliError::Usage(format!("cannot listen on {}: {error}", options.listen)))?;
        let address = listener.local_addr().map_err(CliError::Runtime)?;
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        eprint_line(&format!("listening on {address}; register it in Restate with the URL http://{address}"));
        serve(host, listener, signals.next()).await;
        workers.close().await;
        Ok(Exit::Interrupted)
    });
    runtime.shutdown_timeout(LAST_WORK);
    served
}

/// The workers of the project, opened when the first request needs them.
struct Workers {
    clients: ClientWorkers,
    opened: Mutex<HashMap<String, OpenedWorker>>,
}

impl Workers {
    async fn open(&self, name: Option<&str>) -> Result<Worker, OpenFailure> {
        let named = name.or(self.clients.options.worker.as_deref());
        let spec = choose_worker(named, None, &self.clients.project.current())
            .map_err(|error| OpenFailure::Unknown(error.to_string()))?;
        let mut opened = self.opened.lock().await;
        if let Some(known) = opened.get(&spec.name.value) {
            return Ok(known.worker.clone());
        }
        let key = spec.name.value.clone();
        let new = Box::pin(self.clients.open(spec, Vec::new()))
            .await
            .map_err(|error| OpenFailure::Unavailable(error.to_string()))?;
        let worker = new.worker.clone();
        opened.insert(key, new);
        Ok(worker)
    }

    async fn close(&self) {
        for (_, opened) in self.opened.lock().await.drain() {
            opened.worker.stop();
            close_remote(opened.remote).await;
        }
    }
}
