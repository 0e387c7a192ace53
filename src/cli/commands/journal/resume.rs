//! `deftool journal resume`: continues the requests of a journal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use deftool_durable::{RequestSummary, SqliteJournal};
use deftool_engine::{PreparedWorker, join};
use deftool_project::{find_root, quote, resolve_links};
use deftool_worker::{Approvals, WorkerConfig};

use super::JournalFile;
use crate::cli::options::{EventFormat, FormatOptions};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::inputs::command_dirs;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, eprint_error, eprint_line, eprint_progress};
use crate::cli::worker;
use crate::cli::worker::approve::Approver;
use crate::cli::worker::journal;
use crate::cli::worker::journal::context::JournalContext;
use crate::cli::worker::options::{RequestOptions, WorkerOptions};
use crate::cli::worker::{Follower, Printed, Source, close, connect, connect_servers};

#[derive(Debug, Args)]
#[command(after_help = "\
A reply that was interrupted is requested again. An interrupted call runs again only if the `:effect` of its tool is \
`pure` or `keyed`.

Examples:
  deftool journal resume issues.journal
  deftool journal resume issues.journal req_0123456789abcdef")]
pub(in crate::cli) struct ResumeOptions {
    #[command(flatten)]
    pub(in crate::cli) journal: JournalFile,
    /// Requests to continue [default: all that have not ended]
    #[arg(value_name = "ID")]
    pub(in crate::cli) ids: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    /// Run all calls without confirmation prompts, including tools with :confirm
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions<EventFormat>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

pub(super) fn run(options: &ResumeOptions) -> Result<Exit, CliError> {
    let requests = chosen(&options.journal.path, &options.ids)?;
    if requests.is_empty() {
        eprint_progress("no request to resume: all have ended");
        return Ok(Exit::Clean);
    }
    let journal = Arc::new(SqliteJournal::open(&options.journal.path)?);
    let runtime = runtime()?;
    let mut exits = Vec::new();
    for request in &requests {
        exits.push(runtime.block_on(resume(options, &journal, request)).unwrap_or_else(|error| {
            eprint_error(&error.to_string());
            Exit::NotAttempted
        }));
        if exits.contains(&Exit::Interrupted) {
            break;
        }
    }
    if let Err(message) = journal::close(&journal) {
        eprint_error(&message);
        exits.push(Exit::Failed);
    }
    // Do not wait for the remaining work of a stopped script.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(total(&exits))
}

/// Returns the exit of several requests.
fn total(exits: &[Exit]) -> Exit {
    if exits.contains(&Exit::Interrupted) {
        Exit::Interrupted
    } else if exits.iter().all(|exit| *exit == Exit::NotAttempted) {
        Exit::NotAttempted
    } else if exits.iter().all(|exit| *exit == Exit::Clean) {
        Exit::Clean
    } else {
        Exit::Failed
    }
}

/// Returns the requests to continue.
fn chosen(journal: &Path, ids: &[String]) -> Result<Vec<RequestSummary>, CliError> {
    let mut requests = SqliteJournal::requests(journal)?;
    if ids.is_empty() {
        requests.retain(|request| request.state.is_none());
        return Ok(requests);
    }
    for id in ids {
        let found = requests.iter().find(|request| request.id == *id);
        let message = match found {
            Some(request) if request.state.is_none() => continue,
            Some(_) => format!("the request {id} has ended"),
            None => format!("unknown request {}; see `deftool journal list`", clean(id)),
        };
        return Err(CliError::Usage(message));
    }
    requests.retain(|request| ids.contains(&request.id));
    Ok(requests)
}

/// Opens the worker of a request and continues it until it ends.
async fn resume(
    options: &ResumeOptions,
    journal: &Arc<SqliteJournal>,
    request: &RequestSummary,
) -> Result<Exit, CliError> {
    let (start, entries) = SqliteJournal::load(&options.journal.path, &request.id)?;
    let context: JournalContext = serde_json::from_str(&request.context).map_err(|_| {
        let message =
            format!("the request {} was not submitted by `deftool run` or `deftool rpc`", clean(&request.id));
        CliError::Usage(message)
    })?;
    let given = &options.worker;
    if given.project.directory().is_none() {
        check_project(request, context.project.as_deref())?;
    }
    let model = given.model.clone().or_else(|| context.model.clone());
    let worker_options = WorkerOptions { model, ..given.clone() };
    let of_request = RequestOptions { system: None, params: context.params.clone(), yes: options.yes };
    // Without a project, the worker is the default one.
    let worker = context.project.is_some().then_some(context.worker.as_str());
    let source =
        Source::Journal { path: &options.journal.path, worker, endpoint: context.endpoint.as_deref() };
    let open = worker::open(&worker_options, &of_request, &options.scripts, source)?;
    for change in context.changes(&open) {
        eprint_line(&format!("note: {}", clean(&change)));
    }
    let PreparedWorker { spec, root, tools, config, servers, .. } = open;
    let mut approver = Approver::new(options.yes);
    let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
    let journal = Some(Arc::clone(journal) as Arc<_>);
    let approvals = approver.approvals();
    let config = WorkerConfig { approvals, journal, ..config };
    let remote = tokio::select! {
        connected = connect_servers(&servers) => connected?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let tools = join(tools, remote.as_ref());
    let tools_now = tools.current().tools;
    journal::check_tools(&request.id, &options.journal.path, &entries, &tools_now)
        .map_err(CliError::Usage)?;
    let worker = tokio::select! {
        worker = connect(&worker_options, (&spec, &root), config, tools, true) => worker?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let asks = approvals == Approvals::Ask;
    let (id, past) =
        worker.resume(start, entries, asks).map_err(|error| CliError::Usage(error.to_string()))?;
    let mut follower = Follower {
        worker: &worker,
        printed: Printed::of(options.format.is_json()),
        approver: &mut approver,
        interrupts: &mut interrupts,
    };
    let followed = follower.follow_submitted(id, past).await.map(|followed| followed.exit());
    close(&worker, &mut interrupts).await;
    if let Some(remote) = remote {
        remote.close().await;
    }
    followed
}

/// Checks that a request belongs to the current project. A journal does not select the project whose scripts run.
///
/// # Errors
/// If the request belongs to a different project.
fn check_project(request: &RequestSummary, stored: Option<&Path>) -> Result<(), CliError> {
    let current = find_root(&command_dirs(None)?.project).ok();
    if current.as_deref().map(resolve_links) == stored.map(resolve_links) {
        return Ok(());
    }
    let id = clean(&request.id);
    let message = match stored {
        Some(stored) => {
            let folder = clean(&stored.display().to_string());
            let choice = if stored.is_dir() {
                format!(
                    "to continue it with its tools, use `-C {}`",
                    clean(&quote(&stored.to_string_lossy()))
                )
            } else {
                String::from("if the project moved here, use `-C .`")
            };
            format!("the request {id} belongs to the project {folder}; {choice}")
        }
        None => format!(
            "the request {id} belongs to no project; continue it in a folder outside of projects, or select a project with -C"
        ),
    };
    Err(CliError::Usage(message))
}
