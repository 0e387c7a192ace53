//! `deftool rpc`: serves the tools and workers of the project to another program, on stdin and stdout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use deftool_durable::SqliteJournal;
use deftool_engine::{
    OpenedWorker, PreparedWorker, ProjectRoots, ProjectTrust, ProjectWorkers, WorkerProject, close_remote,
    is_user_worker,
};
use deftool_project::{Listener, LiveProject};
use deftool_rpc::{ChosenWorker, ContinueRequest, Host, script_events, serve};
use deftool_script::ScriptSink;
use deftool_worker::{ToolSource, Worker};
use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::watch;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::terminal::output::{eprint_error, notices};
use crate::cli::terminal::stdio::stdout;
use crate::cli::worker;
use crate::cli::worker::journal::PastRequests;
use crate::cli::worker::journal::context::JournalContext;
use crate::cli::worker::message::{NamedBy, user_message};
use crate::cli::worker::options::WorkerOptions;
use crate::cli::worker::{journal, serve_client};

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
    let roots = ProjectRoots::find(&dirs.project, &notices())?;
    let root = roots.main_root().to_owned();
    let (reloaded, reloads) = watch::channel(());
    let listener = |_| -> Listener {
        let reloaded = reloaded.clone();
        Box::new(move |_| reloaded.send_replace(()))
    };
    let project = Arc::new(roots.open(&root, listener)?);
    let (send_event, script_events) = script_events();
    let scripts = engine::start_with(&options.scripts, ScriptSink::new(send_event))?;
    let journal = options.journal.as_deref().map(journal::open).transpose()?;
    let past =
        options.journal.as_deref().map(|path| PastRequests::read(path, false)).transpose()?.map(Arc::new);
    let workers_of = |root: &Path, project: &Arc<LiveProject>, is_user| {
        let (root, project) = (root.to_owned(), Arc::clone(project));
        let folder = roots.trusted_folder().to_owned();
        Arc::new(ProjectWorkers {
            project: WorkerProject { root, project, folder, is_user },
            connection: options.worker.connection(),
            scripts: Arc::clone(&scripts),
            trusts_all: options.scripts.trust,
            is_conversation: false,
            notices: notices(),
        })
    };
    let journals = Journals { options: options.worker.clone(), journal: journal.clone(), past };
    let journals = Arc::new(journals);
    let of_project = if options.worker.user_tools { Arc::clone(&project) } else { Arc::new(project.alone()) };
    let own = workers_of(&root, &of_project, false);
    let user = roots.user().zip(project.user()).map(|(root, user)| workers_of(root, user, true));
    let default_worker = options.worker.worker.clone();
    let host = Host {
        // stdin belongs to the client.
        trust: Box::new(ProjectTrust::stored(roots.trusted_folder(), options.scripts.trust)),
        root,
        project,
        reloads,
        scripts,
        choose_worker: Box::new(move |generation, name| {
            let named = name.or(default_worker.as_deref());
            let user = generation.user().filter(|_| is_user_worker(generation, named));
            let spec = worker::choose_worker(named, None, user.map_or(generation, |user| &**user));
            let spec = spec.map_err(|error| error.to_string())?;
            Ok(ChosenWorker { spec, is_user: user.is_some() })
        }),
        open_worker: Box::new(move |chosen| {
            // Not by name: the project may have got or lost a worker of this name meanwhile.
            let workers = Arc::clone(user.as_ref().filter(|_| chosen.is_user).unwrap_or(&own));
            open_worker(workers, chosen, Arc::clone(&journals)).map_err(|error| error.to_string()).boxed()
        }),
        read_files: Box::new(|prompt, files| user_message(prompt, (files, NamedBy::Line), String::new())),
    };
    let exit =
        serve_client("a program", |stop| serve(host, script_events, std::io::stdin(), stdout(), stop))?;
    if let Some(Err(message)) = journal.map(|journal| journal::close(&journal)) {
        eprint_error(&message);
        return Ok(if exit == Exit::Clean { Exit::Failed } else { exit });
    }
    Ok(exit)
}

/// The journal of the requests, if there is one.
struct Journals {
    options: WorkerOptions,
    journal: Option<Arc<SqliteJournal>>,
    past: Option<Arc<PastRequests>>,
}

/// Connects a worker, which can continue the requests of the journal.
async fn open_worker(
    workers: Arc<ProjectWorkers>,
    chosen: ChosenWorker,
    journals: Arc<Journals>,
) -> Result<deftool_rpc::OpenedWorker, CliError> {
    let mut context = None;
    let adjust = |prepared: &mut PreparedWorker| {
        let Some(journal) = &journals.journal else { return };
        context = Some(JournalContext::of(prepared, &journals.options, &[]));
        prepared.config.journal = Some(journal::of_worker(journal, prepared, &journals.options, &[]));
    };
    let opened = Box::pin(workers.open(chosen.spec, (Vec::new(), &workers.project.root), adjust)).await?;
    let OpenedWorker { worker, tools, remote, .. } = opened;
    let past = journals.past.clone().zip(context);
    let continue_request = past.map(|(past, context)| continue_past(past, context, (worker.clone(), tools)));
    Ok(deftool_rpc::OpenedWorker {
        worker,
        continue_request,
        close: Box::new(move || close_remote(remote).boxed()),
    })
}

/// Returns a function that continues the requests of the journal in their worker.
fn continue_past(
    past: Arc<PastRequests>,
    context: JournalContext,
    (worker, tools): (Worker, Arc<dyn ToolSource>),
) -> Arc<ContinueRequest> {
    Arc::new(move |submit| {
        let found = past.take(&context, submit, &tools.current().tools)?;
        // The client answers approvals.
        let resumed = found.map(|past| worker.resume(past.start, past.entries, true));
        resumed.transpose().map_err(|error| error.to_string())
    })
}
