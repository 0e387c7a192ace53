//! `deftool rpc`: serves the tools and workers of the project to another program, on stdin and stdout.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use deftool_project::{Generation, LiveProject, ProjectError, find_root};
use deftool_rpc::{Host, script_events, serve};
use deftool_script::ScriptSink;
use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::args::RpcOptions;
use super::command::{CliError, Exit, command_dirs};
use super::engine;
use super::interrupt::Signals;
use super::output::eprint_line;
use super::trust::ProjectTrust;
use super::worker::{self, ClientWorkers, OpenedWorker, close_remote};

/// Time limit for blocked threads at the end: one may wait for stdin.
const LAST_WORK: Duration = Duration::from_millis(100);

pub(super) fn run(options: &RpcOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.worker.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let (reloaded, reloads) = watch::channel(());
    let listener = move |_: Result<&Generation, &ProjectError>| reloaded.send_replace(());
    let project = Arc::new(LiveProject::open(&root, &root, Some(Box::new(listener)))?);
    let (send_event, script_events) = script_events();
    let scripts = engine::start_with(&options.scripts, ScriptSink::new(send_event))?;
    let trusts_all = options.scripts.trust;
    let workers = Arc::new(ClientWorkers {
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
            let open = async move {
                let OpenedWorker { worker, remote } = Box::pin(workers.open(spec, Vec::new())).await?;
                let close = move || close_remote(remote).boxed();
                Ok(deftool_rpc::OpenedWorker { worker, close: Box::new(close) })
            };
            open.map_err(|error: CliError| error.to_string()).boxed()
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
