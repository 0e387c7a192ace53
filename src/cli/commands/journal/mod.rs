//! `deftool journal`: lists, shows, resumes, cancels and removes the requests of a journal.

mod resume;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use deftool_chat::request::{FinalState, JournalEntry, Run};
use deftool_durable::{RequestSummary, SqliteJournal};
use deftool_lang::text::count;
use deftool_record::Journal;
use serde::Serialize;

use crate::cli::options::FormatOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::{
    clean, cut, eprint_error, eprint_line, eprint_progress, print, print_json,
};
use crate::cli::worker::journal;
use crate::cli::worker::show::print_event_json;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool run \"Summarise the new issues.\" --journal issues.journal
  deftool journal list issues.journal
  deftool journal resume issues.journal
  deftool journal prune issues.journal")]
pub(in crate::cli) struct JournalOptions {
    #[command(subcommand)]
    pub(in crate::cli) action: JournalAction,
}

// A file that `deftool run --journal` or `deftool rpc --journal` wrote.
#[derive(Debug, Args)]
pub(in crate::cli) struct JournalFile {
    /// Journal of `deftool run --journal` or `deftool rpc --journal`
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum JournalAction {
    /// List the requests of a journal
    #[command(after_help = "Examples:\n  deftool journal list issues.journal --json")]
    List {
        #[command(flatten)]
        journal: JournalFile,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Print the events of a request, one JSON object per line
    #[command(after_help = "Examples:\n  deftool journal show issues.journal req_0123456789abcdef")]
    Show {
        #[command(flatten)]
        journal: JournalFile,
        /// Request
        id: String,
    },
    /// Continue the requests that were interrupted
    Resume(resume::ResumeOptions),
    /// Cancel requests that have not ended, so that `resume` does not continue them
    #[command(after_help = "Examples:\n  deftool journal cancel issues.journal req_0123456789abcdef")]
    Cancel {
        #[command(flatten)]
        journal: JournalFile,
        /// Requests
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
    /// Remove the requests that have ended or are damaged
    #[command(after_help = "Examples:\n  deftool journal prune issues.journal")]
    Prune {
        #[command(flatten)]
        journal: JournalFile,
    },
}

/// Maximum number of shown characters of a prompt.
const MAX_PROMPT: usize = 60;

pub(in crate::cli) fn run(options: &JournalOptions) -> Result<Exit, CliError> {
    match &options.action {
        JournalAction::List { journal, format } => list(&journal.path, format.is_json())?,
        JournalAction::Show { journal, id } => {
            for (_, entry) in SqliteJournal::load(&journal.path, id)?.1 {
                if let JournalEntry::Event(event) = entry {
                    print_event_json(&event);
                }
            }
        }
        JournalAction::Resume(options) => return resume::run(options),
        JournalAction::Cancel { journal, ids } => return cancel_all(&journal.path, ids),
        JournalAction::Prune { journal } => return prune(&journal.path),
    }
    Ok(Exit::Clean)
}

/// A request in the output of `--json`.
#[derive(Serialize)]
struct Listed<'r> {
    id: &'r str,
    /// `unfinished`, `completed`, `failed`, `canceled` or `damaged`.
    state: &'static str,
    worker: &'r str,
    submitted_at_ms: u64,
    prompt: &'r str,
}

fn list(journal: &Path, json: bool) -> Result<(), CliError> {
    let requests = SqliteJournal::requests(journal)?;
    if json {
        let listed: Vec<Listed> = requests.iter().map(listed).collect();
        print_json(&listed, true);
        return Ok(());
    }
    for request in &requests {
        if let Some(damage) = &request.damage {
            eprint_line(&format!("note: the request {} is damaged: {}", clean(&request.id), clean(damage)));
        }
        let Listed { id, state, prompt, .. } = listed(request);
        let prompt = cut(&clean(prompt).replace(['\n', '\t'], " "), MAX_PROMPT);
        print(&format!("{}  {state:<11}  {prompt}\n", clean(id)));
    }
    Ok(())
}

fn listed(request: &RequestSummary) -> Listed<'_> {
    let state = match request.state {
        _ if request.damage.is_some() => "damaged",
        // Or it is running in another process.
        None => "unfinished",
        Some(FinalState::Completed) => "completed",
        Some(FinalState::Failed) => "failed",
        Some(FinalState::Canceled) => "canceled",
    };
    let RequestSummary { id, worker, prompt, submitted_at_ms, .. } = request;
    Listed { id, state, worker, submitted_at_ms: *submitted_at_ms, prompt }
}

/// Ends requests as canceled. A request that cannot be canceled does not affect the others.
fn cancel_all(path: &Path, ids: &[String]) -> Result<Exit, CliError> {
    let journal = SqliteJournal::open_existing(path)?;
    let mut failed = 0;
    for id in ids {
        if let Err(error) = cancel(path, &journal, id) {
            eprint_error(&error.to_string());
            failed += 1;
        }
    }
    journal::close(&journal).map_err(CliError::Usage)?;
    Ok(match failed {
        0 => Exit::Clean,
        _ if failed == ids.len() => Exit::NotAttempted,
        _ => Exit::Failed,
    })
}

fn cancel(path: &Path, journal: &SqliteJournal, id: &str) -> Result<(), CliError> {
    let (request, entries) = SqliteJournal::load(path, id)?;
    let at_ms = entries.last().map_or(0, |(at_ms, _)| *at_ms);
    let start = request.session.run_start();
    let restored = Run::restore(request.config, start, entries);
    let mut run = restored.map_err(|error| CliError::Usage(format!("{id}: {error}")))?.run;
    if run.outcome().is_some() {
        return Err(CliError::Usage(format!("the request {id} has ended")));
    }
    run.cancel(at_ms);
    journal.append(id, at_ms, run.take_events().into_iter().map(JournalEntry::Event).collect());
    Ok(())
}

/// Removes the requests that cannot be continued.
fn prune(path: &Path) -> Result<Exit, CliError> {
    let is_removed = |request: &RequestSummary| request.state.is_some() || request.damage.is_some();
    let (removed, errors) = SqliteJournal::remove(path, is_removed)?;
    for error in &errors {
        eprint_error(&error.to_string());
    }
    eprint_progress(&format!("removed {}", count(removed, "request")));
    Ok(if errors.is_empty() { Exit::Clean } else { Exit::Failed })
}
