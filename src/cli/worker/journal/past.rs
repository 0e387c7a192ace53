//! The requests of a journal that were submitted before, by their content: a job with the same content continues its
//! request, or takes its outcome, instead of running a second time.
//!
//! The content is what was submitted: the project, the worker, the options of the command line and the request itself. It
//! is read from the stored request, so a journal needs no other data to recognise a job.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use deftool_chat::Message;
use deftool_chat::request::{FinalState, JournalEntry, RequestOptions};
use deftool_durable::{RequestSummary, SqliteJournal};
use deftool_lang::schema::ToolSet;
use deftool_lang::text::digest;
use deftool_process::lock;
use deftool_project::resolve_links;
use deftool_record::JournaledRequest;
use deftool_worker::SubmitRequest;

use super::context::JournalContext;
use super::open_calls::check_tools;
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::{clean, eprint_line};

/// The requests of a journal by their content.
pub(in crate::cli) struct PastRequests {
    path: PathBuf,
    /// The requests of each content. Each is used once; the last one first.
    requests: Mutex<HashMap<String, Vec<RequestSummary>>>,
}

/// A request of a journal, for [`Worker::resume`](deftool_worker::Worker::resume).
pub(in crate::cli) struct PastRequest {
    pub(in crate::cli) start: JournaledRequest,
    /// The entries with their times.
    pub(in crate::cli) entries: Vec<(u64, JournalEntry)>,
    pub(in crate::cli) has_ended: bool,
}

impl PastRequests {
    /// Reads the requests of the journal at `path`. With `repeats_failed`, those that failed count as never submitted.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub(in crate::cli) fn read(path: &Path, repeats_failed: bool) -> Result<Self, CliError> {
        let mut found: HashMap<String, Vec<RequestSummary>> = HashMap::new();
        for mut request in SqliteJournal::requests(path)? {
            let Some(session) = request.session.take() else {
                let (id, damage) = (clean(&request.id), clean(request.damage.as_deref().unwrap_or_default()));
                eprint_line(&format!("note: the request {id} of the journal is damaged: {damage}"));
                continue;
            };
            let context = serde_json::from_str::<JournalContext>(&request.context).ok();
            let content = context.and_then(|context| {
                content(&context, &session.job_name, &session.conversation, &session.options)
            });
            if let Some(content) =
                content.filter(|_| !(repeats_failed && request.state == Some(FinalState::Failed)))
            {
                found.entry(content).or_default().push(request);
            }
        }
        for requests in found.values_mut() {
            requests.sort_by_key(|request| match request.state {
                Some(FinalState::Completed) => 2,
                None => 1,
                Some(FinalState::Failed | FinalState::Canceled) => 0,
            });
        }
        Ok(Self { path: path.to_owned(), requests: Mutex::new(found) })
    }

    /// Whether requests with the contents of `submitted` have all ended.
    pub(in crate::cli) fn have_ended(&self, context: &JournalContext, submitted: &[SubmitRequest]) -> bool {
        let mut ended: HashMap<_, usize> = HashMap::new();
        for (content, requests) in &*lock(&self.requests) {
            let count = requests.iter().filter(|request| request.state.is_some()).count();
            ended.insert(content.clone(), count);
        }
        submitted.iter().all(|submit| {
            let left = content_of(context, submit).and_then(|content| ended.get_mut(&content));
            left.is_some_and(|left| std::mem::replace(left, left.saturating_sub(1)) > 0)
        })
    }

    /// Returns a request with the content of `submit`, once. It may have ended. `tools`: those of the worker.
    ///
    /// # Errors
    /// If it is damaged, or waits for a tool that is missing. The message is for the user.
    pub(in crate::cli) fn take(
        &self,
        context: &JournalContext,
        submit: &SubmitRequest,
        tools: &ToolSet,
    ) -> Result<Option<PastRequest>, String> {
        let Some(content) = content_of(context, submit) else { return Ok(None) };
        let found = lock(&self.requests).get_mut(&content).and_then(Vec::pop);
        let Some(RequestSummary { id, state, .. }) = found else { return Ok(None) };
        let (start, entries) = SqliteJournal::load(&self.path, &id).map_err(|error| error.to_string())?;
        if state.is_none() {
            check_tools(&id, &self.path, &entries, tools)?;
        }
        Ok(Some(PastRequest { start, entries, has_ended: state.is_some() }))
    }
}

fn content_of(context: &JournalContext, submit: &SubmitRequest) -> Option<String> {
    content(context, &submit.job_name, &submit.messages, &submit.options())
}

/// Returns the digest of what was submitted. `None`: the name of the project is not text.
fn content(
    context: &JournalContext,
    job_name: &str,
    conversation: &[Message],
    options: &RequestOptions,
) -> Option<String> {
    let JournalContext { project, worker, model, params, .. } = context;
    let project = project.as_deref().map(resolve_links);
    let content = (project, worker, model, params, job_name, conversation, options);
    Some(digest([serde_json::to_string(&content).ok()?]))
}
