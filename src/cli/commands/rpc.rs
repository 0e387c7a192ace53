//! `deftool rpc`: serves the tools and workers of the project to another program, on stdin and stdout.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use deftool_project::{Generation, LiveProject, ProjectError, find_root};
use deftool_rpc::{ContinueRequest, Host, script_events, serve};
use deftool_script::ScriptSink;
use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::watch;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::trust::ProjectTrust;
use crate::cli::terminal::output::eprint_error;
use crate::cli::terminal::stdio::stdout;
use crate::cli::worker;
use crate::cli::worker::journal::PastRequests;
use crate::cli::worker::journal::context::JournalContext;
use crate::cli::worker::message::user_message;
use crate::cli::worker::options::WorkerOptions;
use crate::cli::worker::{ClientWorkers, OpenWorker, OpenedWorker, close_remote, journal, serve_client};

#[derive(Debug, Args)]
#[command(after_help = "\
Another program starts this command and sends JSON-RPC requests on stdin, one per line or with a Content-Length header. \
docs/rpc.md describes the methods.

Examples:
  deftool rpc -C my-agent
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"list\"}' | deftool rpc")]
pub(in crate::cli) struct RpcOptions {
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    /// Store the requests in a journal, so that `deftool journal resume` can continue them after a crash
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) journal: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

pub(in crate::cli) fn run(options: &RpcOptions) -> Result<Exit, CliError> {
    let dirs = options.worker.project.dirs()?;
    let root = find_root(&dirs.project)?;
    let (reloaded, reloads) = watch::channel(());
    let listener = move |_: Result<&Generation, &ProjectError>| reloaded.send_replace(());
    let project = Arc::new(LiveProject::open(&root, &root, Some(Box::new(listener)))?);
    let (send_event, script_events) = script_events();
    let scripts = engine::start_with(&options.scripts, ScriptSink::new(send_event))?;
    let trusts_all = options.scripts.trust;
    let journal = options.journal.as_deref().map(journal::open).transpose()?;
    let of_worker = journal.clone().map(|journal| {
        let options = options.worker.clone();
        Box::new(move |open: &OpenWorker| journal::of_worker(&journal, open, &options, &[])) as Box<_>
    });
    let past =
        options.journal.as_deref().map(|path| PastRequests::read(path, false)).transpose()?.map(Arc::new);
    let workers = Arc::new(ClientWorkers {
        options: options.worker.clone(),
        root: root.clone(),
        project: Arc::clone(&project),
        scripts: Arc::clone(&scripts),
        trusts_all,
        is_conversation: false,
        journal: of_worker,
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
            let (workers, past) = (Arc::clone(&workers), past.clone());
            let open = async move {
                let mut opened = Box::pin(workers.open(spec, Vec::new())).await?;
                let (worker, remote) = (opened.worker.clone(), opened.remote.take());
                let close = move || close_remote(remote).boxed();
                let context = opened.context.take();
                let continue_request =
                    past.zip(context).map(|(past, context)| continue_past(past, context, opened));
                Ok(deftool_rpc::OpenedWorker { worker, continue_request, close: Box::new(close) })
            };
            open.map_err(|error: CliError| error.to_string()).boxed()
        }),
        read_files: Box::new(|prompt, files| user_message(prompt, files, String::new())),
    };
    let exit =
        serve_client("a program", |stop| serve(host, script_events, std::io::stdin(), stdout(), stop))?;
    if let Some(Err(message)) = journal.map(|journal| journal::close(&journal)) {
        eprint_error(&message);
        return Ok(if exit == Exit::Clean { Exit::Failed } else { exit });
    }
    Ok(exit)
}

/// Returns a function that continues the requests of the journal in their worker.
fn continue_past(
    past: Arc<PastRequests>,
    context: JournalContext,
    opened: OpenedWorker,
) -> Arc<ContinueRequest> {
    let OpenedWorker { worker, tools, .. } = opened;
    Arc::new(move |submit| {
        let found = past.take(&context, submit, &tools.current().tools)?;
        // The client answers approvals.
        let resumed = found.map(|(start, entries)| worker.resume(start, entries, true));
        resumed.transpose().map_err(|error| error.to_string())
    })
}
