//! `deftool rpc`: serves the tools and workers of the project to another program, on stdin and stdout.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::WorkerSpec;
use deftool_project::{Generation, LiveProject, PermissionRequest, ProjectError, find_root};
use deftool_rpc::{Host, OpenedWorker, script_events, serve};
use deftool_script::{ScriptRunner, ScriptSink};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::args::{RpcOptions, WorkerOptions};
use super::command::{CliError, Exit, command_dirs};
use super::engine;
use super::interrupt::Signals;
use super::output::eprint_line;
use super::trust::{ProjectTrust, not_trusted};
use super::worker::{self, OpenWorker, connect, join};

/// Maximum number of requests that wait for a slot of a worker.
const MAX_QUEUE: usize = 64;

/// Time limit for blocked threads at the end: one may wait for stdin.
const LAST_WORK: Duration = Duration::from_millis(100);

/// The workers of a project.
struct Workers {
    options: WorkerOptions,
    root: PathBuf,
    project: Arc<LiveProject>,
    scripts: Arc<ScriptRunner>,
    /// `--trust`: all permissions, for this run.
    trusts_all: bool,
}

pub(super) fn run(options: &RpcOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.worker.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let (reloaded, reloads) = watch::channel(());
    let listener = move |_: Result<&Generation, &ProjectError>| reloaded.send_replace(());
    let project = Arc::new(LiveProject::open(&root, &root, Some(Box::new(listener)))?);
    let (send_event, script_events) = script_events();
    let scripts = engine::start_with(&options.scripts, ScriptSink::new(send_event))?;
    let trusts_all = options.scripts.trust;
    let workers = Arc::new(Workers {
        options: options.worker.clone(),
        root: root.clone(),
        project: Arc::clone(&project),
        scripts: Arc::clone(&scripts),
        trusts_all,
    });
    let default_worker = options.worker.worker.clone();
    let host = Host {
        // stdin belongs to the client.
        trust: Box::new(ProjectTrust::without_prompt(&root, trusts_all)),
        root,
        project,
        reloads,
        scripts,
        choose_worker: Box::new(move |generation, name| {
            let named = name.or(default_worker.as_deref());
            worker::choose_worker(named, None, generation).map_err(|error| error.to_string())
        }),
        open_worker: Box::new(move |spec| {
            let workers = Arc::clone(&workers);
            async move { Box::pin(workers.open(spec)).await.map_err(|error| error.to_string()) }.boxed()
        }),
    };
    if std::io::stdin().is_terminal() {
        eprint_line("note: a program starts this command and sends messages on stdin; press Ctrl-C to stop");
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        let serving = serve(host, script_events, std::io::stdin(), std::io::stdout(), stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => served.map(|()| Exit::Clean),
            () = signals.next() => {
                stop.cancel();
                serving.await.map(|()| Exit::Interrupted)
            }
        }
    });
    runtime.shutdown_timeout(LAST_WORK);
    served.map_err(CliError::Runtime)
}

impl Workers {
    /// Connects a worker to its server.
    ///
    /// # Errors
    /// If a required permission is not trusted, or if a server cannot be used.
    async fn open(&self, spec: WorkerSpec) -> Result<OpenedWorker, CliError> {
        let generation = self.project.current();
        let (servers, mut requests) = worker::requirements(&self.root, &generation, &spec);
        requests.extend(worker::endpoint_requirements(&self.options, &generation, &spec));
        let missing = if self.trusts_all { Vec::new() } else { not_trusted(&generation, requests) };
        if !missing.is_empty() {
            return Err(CliError::Usage(format!(
                "the project requires permissions that are not trusted: {}; review the specs, then run `deftool trust grant`",
                PermissionRequest::lines(&missing).join("; ")
            )));
        }
        let trust = ProjectTrust::without_prompt(&self.root, self.trusts_all);
        let scripts = Arc::clone(&self.scripts);
        let opened = OpenWorker::new(Arc::clone(&self.project), &self.root, spec, (trust, scripts), servers)?;
        let remote = opened.servers.connect().await?;
        let tools = join(opened.tools, remote.as_ref());
        let config = deftool_worker::WorkerConfig { queue: MAX_QUEUE, ..opened.config };
        let worker = connect(&self.options, &opened.spec, config, tools, true).await?;
        let close = move || {
            async move {
                if let Some(remote) = remote {
                    remote.close().await;
                }
            }
            .boxed()
        };
        Ok(OpenedWorker { worker, close: Box::new(close) })
    }
}
