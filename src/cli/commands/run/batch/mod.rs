//! `deftool run --batch`: runs the jobs of a file, as many at a time as the worker has `:slots`, and prints a line of JSON
//! for each when it ends.
//!
//! With a journal, a job whose content was submitted before is not repeated: if its request has ended, its outcome is
//! printed, otherwise the request continues. An interrupt suspends the running requests, so that the same command continues
//! them.

mod job;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{Approval, Event, FailureKind, FinalState, Outcome, Signal};
use deftool_chat::{Message, Usage};
use deftool_durable::SqliteJournal;
use deftool_engine::{PreparedWorker, close_remote, join};
use deftool_lang::text::count;
use deftool_record::{Durability, Journal, Recorder};
use deftool_worker::{Approvals, SubmitRequest, ToolSource, Worker, WorkerConfig, WorkerState};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::RunOptions;
use super::signals::MISSING_SIGNAL;
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::script_log::ScriptLines;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{
    clean, eprint_error, eprint_line, eprint_progress, json_line, print, print_without_blocking,
    shows_progress, stdout_failed, stdout_is_terminal, wait_for_stderr,
};
use crate::cli::terminal::spinner::{Spinner, suspend};
use crate::cli::worker;
use crate::cli::worker::journal::context::JournalContext;
use crate::cli::worker::journal::{PastRequest, PastRequests};
use crate::cli::worker::secrets;
use crate::cli::worker::{Source, api_key, close, connect, connect_servers, journal, recordings, trace};
use job::{JobError, JobFile, JobLine, JobResult};

/// The kind of the error of a job that cannot be submitted.
const NOT_SUBMITTED: &str = "not_submitted";
/// The kind of the error of a line that is not a job.
const INVALID_JOB: &str = "invalid_job";

/// Runs the jobs of the file at `path`, or of stdin for `-`.
///
/// # Errors
/// If no job was attempted.
pub(super) fn run(options: &RunOptions, path: &Path) -> Result<Exit, CliError> {
    let file = JobFile::read(path)?;
    let open = worker::open(&options.worker, &options.request, &options.scripts, Source::CommandLine)?;
    let stored = options.journal.as_deref().map(|path| Stored::open(path, &open, options)).transpose()?;
    let PreparedWorker { spec, root, tools, config, servers, .. } = open;
    let secrets = secrets(&options.redact, &tools.project().current())?;
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        // The prompts of several requests cannot be answered one after the other while their requests wait.
        let approvals = if options.request.yes { Approvals::Allow } else { Approvals::Refuse };
        let journal = stored.as_ref().map(|stored| Arc::clone(&stored.of_worker));
        // A slot whose server still processes a canceled prompt is not free. Each result is taken.
        let (queue, keep_results) = (config.slots, usize::MAX);
        let config = WorkerConfig { approvals, journal, queue, keep_results, ..config };
        let remote = tokio::select! {
            connected = connect_servers(&servers) => connected?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let tools = join(tools, remote.as_ref());
        options.signals.check(&tools.current().tools)?;
        let has_ended = match &stored {
            Some(stored) if !options.retry_failed => stored.have_ended(&file, options).await,
            Some(_) | None => false,
        };
        let worker = if has_ended {
            options.worker.connection().without_probes(&spec, config, Arc::clone(&tools))?
        } else {
            tokio::select! {
                worker = connect(&options.worker, (&spec, &root), config, Arc::clone(&tools), true) => worker?,
                () = interrupts.next() => return Ok(Exit::Interrupted),
            }
        };
        // Create the file only now, so that a failed connection does not overwrite an older recording.
        let key = api_key(&spec);
        let create = |path| recordings::create(path, key.as_deref(), secrets);
        let recorder = options.record.as_deref().map(create).transpose()?;
        let batch = Batch {
            options,
            file: &file,
            worker: &worker,
            tools: &*tools,
            stored: stored.as_ref(),
            recorder: recorder.clone(),
            stopped: CancellationToken::new(),
            active: RefCell::default(),
            has_journal_failed: Cell::new(false),
            has_refused: Cell::new(false),
        };
        let mut exit = batch.run(&mut interrupts).await;
        close(&worker, &mut interrupts).await;
        close_remote(remote).await;
        if let Some(recorder) = &recorder {
            exit = recordings::close(recorder, exit);
        }
        if let Some(Err(message)) = stored.map(|stored| journal::close(&stored.journal)) {
            eprint_error(&message);
            exit = if exit == Exit::Clean { Exit::Failed } else { exit };
        }
        Ok(exit)
    });
    // Do not wait for the remaining work of a stopped script.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// The journal of a batch.
struct Stored {
    journal: Arc<SqliteJournal>,
    /// The journal with the context of the worker.
    of_worker: Arc<dyn Journal>,
    context: JournalContext,
    past: PastRequests,
}

impl Stored {
    fn open(path: &Path, open: &PreparedWorker, options: &RunOptions) -> Result<Self, CliError> {
        let journal = journal::open(path)?;
        let (worker, params) = (&options.worker, &options.request.params);
        Ok(Self {
            of_worker: journal::of_worker(&journal, open, worker, params),
            context: JournalContext::of(open, worker, params),
            past: PastRequests::read(path, options.retry_failed)?,
            journal,
        })
    }

    /// Whether the requests of all jobs have ended.
    async fn have_ended(&self, file: &JobFile, options: &RunOptions) -> bool {
        let defaults = defaults(options);
        let mut submitted = Vec::new();
        for job in file.lines() {
            // An invalid job is not submitted.
            submitted.extend(job.request(&defaults).await);
        }
        self.past.have_ended(&self.context, &submitted)
    }
}

/// Returns the options of all jobs.
fn defaults(options: &RunOptions) -> SubmitRequest {
    let system_prompt = options.request.system.clone();
    SubmitRequest { system_prompt, trace: trace::caller(), ..SubmitRequest::default() }
}

/// The jobs that run.
struct Batch<'b> {
    options: &'b RunOptions,
    file: &'b JobFile,
    worker: &'b Worker,
    tools: &'b dyn ToolSource,
    stored: Option<&'b Stored>,
    recorder: Option<Arc<Recorder>>,
    /// Canceled if no job may start any more, and the running ones must end.
    stopped: CancellationToken,
    /// The requests that run.
    active: RefCell<HashSet<String>>,
    has_journal_failed: Cell<bool>,
    /// Whether the note about refused calls was printed.
    has_refused: Cell<bool>,
}

/// A request that has ended.
struct Ended {
    id: String,
    outcome: Arc<Outcome>,
    conversation: Vec<Message>,
    /// Whether the journal contained its end.
    is_stored: bool,
}

/// The requests of a job so far: the first, and those that name the error of an exit call.
struct JobProgress {
    requests: u32,
    signals: Vec<Signal>,
    usage: Option<Usage>,
    /// Whether the journal contained the end of each.
    is_stored: bool,
}

impl Default for JobProgress {
    fn default() -> Self {
        Self { requests: 0, signals: Vec::new(), usage: None, is_stored: true }
    }
}

impl JobProgress {
    fn add(&mut self, outcome: &Outcome, is_stored: bool) {
        self.requests = self.requests.saturating_add(1);
        self.signals.extend(outcome.signals.iter().cloned());
        if let Some(usage) = outcome.usage {
            self.usage.get_or_insert_default().add(usage);
        }
        self.is_stored &= is_stored;
    }
}

/// The number of jobs in each state.
#[derive(Default)]
struct Tally {
    completed: usize,
    failed: usize,
    canceled: usize,
}

impl Tally {
    fn add(&mut self, state: FinalState) {
        match state {
            FinalState::Completed => self.completed += 1,
            FinalState::Failed => self.failed += 1,
            FinalState::Canceled => self.canceled += 1,
        }
    }

    fn ended(&self) -> usize {
        self.completed + self.failed + self.canceled
    }

    /// Describes the result, as in `3 jobs: 2 completed, 1 failed`.
    fn describe(&self, total: usize) -> String {
        let left = total.saturating_sub(self.ended());
        let parts = [
            (self.completed, "completed"),
            (self.failed, "failed"),
            (self.canceled, "canceled"),
            (left, "not finished"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        format!("{}: {}", count(total, "job"), parts.join(", "))
    }
}

impl Batch<'_> {
    /// Runs all jobs. After an interrupt, or if stdout or the journal cannot be written, no further job starts.
    async fn run(&self, interrupts: &mut Interrupts) -> Exit {
        let mut logged = ScriptLines::subscribe(self.worker);
        let total = self.file.lines().count();
        let bar = shows_progress().then(|| Spinner::start_bar(total));
        let slots = self.worker.status().slots;
        let mut jobs = self.file.lines();
        let (mut active, mut tally) = (FuturesUnordered::new(), Tally::default());
        loop {
            while !self.stopped.is_cancelled()
                && active.len() < slots
                && let Some(job) = jobs.next()
            {
                active.push(self.run_job(job));
            }
            if active.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = interrupts.next() => {
                    if self.stopped.is_cancelled() {
                        break;
                    }
                    self.stop();
                }
                Some(result) = active.next() => {
                    if let Some(result) = result {
                        print_result(&result).await;
                        tally.add(result.state);
                        if let Some(bar) = &bar {
                            bar.set_position(tally.ended(), tally.failed);
                        }
                    }
                    if stdout_failed() || self.has_journal_failed.get() {
                        self.stop();
                    }
                }
                line = logged.next() => {
                    wait_for_stderr().await;
                    eprint_line(&line);
                }
            }
        }
        drop((bar, logged));
        eprint_progress(&tally.describe(total));
        if self.has_journal_failed.get() {
            // The journal reports the error when it is closed.
            Exit::Failed
        } else if self.stopped.is_cancelled() {
            Exit::Interrupted
        } else if tally.completed == total {
            Exit::Clean
        } else {
            Exit::Failed
        }
    }

    /// Stops the running requests. With a journal, the next command continues them.
    fn stop(&self) {
        self.stopped.cancel();
        for id in &*self.active.borrow() {
            self.worker.end(id);
        }
    }

    /// Runs a job to its end. Returns `None` if it was stopped and can be run again.
    async fn run_job(&self, job: JobLine<'_>) -> Option<JobResult> {
        let defaults = SubmitRequest { recorder: self.recorder.clone(), ..defaults(self.options) };
        let submit = match job.request(&defaults).await {
            Ok(submit) => submit,
            Err((job_name, message)) => {
                return Some(JobResult::not_submitted(job.index, &job_name, INVALID_JOB, message));
            }
        };
        let expected = &self.options.signals;
        let mut progress = JobProgress::default();
        let mut request = submit.clone();
        loop {
            let Ended { id, outcome, conversation, is_stored } =
                match self.run_request(job.index, request).await? {
                    Ok(ended) => ended,
                    Err(message) => {
                        let message = job.error(&message);
                        return Some(JobResult::not_submitted(
                            job.index,
                            &submit.job_name,
                            NOT_SUBMITTED,
                            message,
                        ));
                    }
                };
            progress.add(&outcome, is_stored);
            let is_completed = outcome.state == FinalState::Completed;
            let tools = self.tools.current().tools;
            let missing =
                expected.missing(&progress.signals, &outcome.signals, &tools).filter(|_| is_completed);
            if let Some(missing) = &missing {
                if progress.requests <= expected.result_retries {
                    request = missing.retry(&submit, conversation);
                    continue;
                }
                // The job failed before this command. A stored request is used once, so this ends.
                if self.options.retry_failed && progress.is_stored {
                    (request, progress) = (submit.clone(), JobProgress::default());
                    continue;
                }
            }
            let mut result = JobResult::of(job.index, &submit.job_name, id, &outcome);
            result.usage = progress.usage;
            if let Some(missing) = missing {
                result.state = FinalState::Failed;
                result.error =
                    Some(JobError { kind: MISSING_SIGNAL.to_owned(), message: missing.to_string() });
            } else if is_completed {
                result.result = expected.result_of(&progress.signals, &tools).cloned();
            }
            result.signals = progress.signals;
            return Some(result);
        }
    }

    /// Runs a request to its end, or the one in the journal that has the same content. Returns `None` if it was stopped, and
    /// the reason if it was not submitted.
    async fn run_request(&self, index: usize, submit: SubmitRequest) -> Option<Result<Ended, String>> {
        let past = self.stored.map_or(Ok(None), |stored| {
            stored.past.take(&stored.context, &submit, &self.tools.current().tools)
        });
        let (id, from, is_stored) = match past {
            Ok(Some(PastRequest { start, entries, has_ended })) => {
                self.unless_stopped(self.wait_until_ready()).await?;
                match self.worker.resume(start, entries, false) {
                    Ok((id, from)) => (id, from, has_ended),
                    Err(error) => return Some(Err(error.to_string())),
                }
            }
            Ok(None) => match self.unless_stopped(self.worker.submit_when_ready(submit)).await? {
                Ok(id) => (id, 0, false),
                Err(error) => return Some(Err(error.to_string())),
            },
            Err(message) => return Some(Err(message)),
        };
        self.active.borrow_mut().insert(id.clone());
        if self.unless_stopped(self.follow(index, &id, from)).await.is_none() {
            if self.stored.is_some() {
                return None;
            }
            let _ = self.worker.wait(&id).await;
        }
        self.active.borrow_mut().remove(&id);
        let conversation = self.worker.conversation(&id).unwrap_or_default();
        let outcome = self.worker.take_result(&id).ok()?;
        self.store_end(&id, &outcome).await;
        Some(Ok(Ended { id, outcome, conversation, is_stored }))
    }

    /// Waits until the end of a request is in the journal, so that a job whose result was printed is never repeated.
    async fn store_end(&self, id: &str, outcome: &Outcome) {
        let Some(stored) = self.stored else { return };
        if outcome.kind.as_deref() == Some(FailureKind::JournalFailed.as_str())
            || stored.journal.commit(id, Durability::Process).await.is_err()
        {
            self.has_journal_failed.set(true);
        }
    }

    /// Returns `None` if the batch stops before `work` ends.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.stopped.cancelled() => None,
        }
    }

    /// Waits for the start or a restart of a managed server. An error is reported when the request is submitted.
    async fn wait_until_ready(&self) {
        if self.worker.state() == WorkerState::Running {
            let _ = self.worker.ready().await;
        }
    }

    /// Waits for the end of a request, and prints its warnings.
    async fn follow(&self, index: usize, id: &str, from: usize) {
        let Some(mut events) = self.worker.events(id, from) else { return };
        while let Some(event) = events.next().await {
            match &*event {
                Event::Warning { message } => eprint_line(&format!("warn   job {index}: {}", clean(message))),
                Event::Approval { answer: Some(Approval::Refused { .. }), .. }
                    if !self.has_refused.replace(true) =>
                {
                    eprint_line(
                        "note: a batch has no confirmation prompts, so calls of tools with :confirm are refused; --yes allows them",
                    );
                }
                _ => {}
            }
        }
    }
}

/// Prints the result of a job as one line.
async fn print_result(result: &JobResult) {
    let line = json_line(result);
    if stdout_is_terminal() {
        suspend(|| print(&line));
    } else {
        print_without_blocking(&line).await;
    }
}
