//! Journals: `run` and `rpc` store their requests with `--journal`, `journal` lists, continues and removes them.

pub(in crate::cli) mod context;
mod open_calls;
mod past;

use std::path::Path;
use std::sync::Arc;

use deftool_durable::{OpenError, SqliteJournal};
use deftool_record::{Journal, JournalError, Timeline};
use serde_json::Value;

use self::context::JournalContext;
use super::PreparedWorker;
use super::options::WorkerOptions;
use crate::cli::outcome::CliError;

pub(in crate::cli) use open_calls::check_tools;
pub(in crate::cli) use past::{PastRequest, PastRequests};

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Opens the journal of `--journal`.
///
/// # Errors
/// If the file is not a journal, cannot be written, or another process has opened it.
pub(in crate::cli) fn open(path: &Path) -> Result<Arc<SqliteJournal>, CliError> {
    Ok(Arc::new(SqliteJournal::open(path)?))
}

/// Returns the journal for the requests of a worker. `resume` finds the worker again.
pub(in crate::cli) fn of_worker(
    journal: &Arc<SqliteJournal>,
    open: &PreparedWorker,
    options: &WorkerOptions,
    params: &[(String, Value)],
) -> Arc<dyn Journal> {
    let context = JournalContext::of(open, options, params);
    Arc::clone(journal).with_context(serde_json::to_string(&context).unwrap_or_default())
}

/// Returns the requests of a journal for `view`.
///
/// # Errors
/// If the file is not a journal, cannot be read, or contains no request that can be read.
pub(in crate::cli) fn timeline(path: &Path) -> Result<Timeline, CliError> {
    let requests = SqliteJournal::requests(path)?;
    let (mut loaded, mut damage) = (Vec::new(), Vec::new());
    for request in &requests {
        match SqliteJournal::load(path, &request.id) {
            Ok(request) => loaded.push(request),
            Err(error) => damage.push(error.to_string()),
        }
    }
    if loaded.is_empty() {
        damage.insert(0, format!("{} contains no requests that can be read", path.display()));
        return Err(CliError::Usage(damage.join("; ")));
    }
    Ok(Timeline { damage, ..Timeline::of_journal(loaded) })
}

/// Closes a journal. Returns the message for the user if it is incomplete.
pub(in crate::cli) fn close(journal: &SqliteJournal) -> Result<(), String> {
    journal.close().map_err(|JournalError(message)| format!("{message}; the request cannot be resumed"))
}
