//! One attempt of Restate to execute a request.
//!
//! The steps that an earlier attempt stored are added first. When Restate asks for a step that is not stored, the
//! attempt submits the request to the worker, or continues it with the entries so far. Then it returns what the worker
//! writes to its journal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{Approval, Event, JournalEntry, OnFailure};
use deftool_record::JournaledRequest;
use deftool_worker::{NotReady, Origin, ResumeError, SubmitError, Worker, WorkerState};
use restate_sdk::errors::HandlerError;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::bridge::Item;
use crate::host::{Failure, Host};
use crate::protocol::{Step, Submission};

/// Maximum time until consumers in other processes receive events. Fewer pages cost less.
const FLUSH: Duration = Duration::from_millis(500);
/// JSON size in bytes at which collected events are published. Restate limits the size of a page.
const FULL_PAGE: usize = 1 << 20;
/// Maximum duration of a step. Restate reports a cancellation between two steps.
const MAX_STEP: Duration = Duration::from_secs(2);

/// An attempt to execute one request. Dropping it stops the request in this process.
pub(crate) struct Attempt {
    host: Arc<Host>,
    id: String,
    submission: Submission,
    start: Option<Box<JournaledRequest>>,
    /// The stored entries.
    entries: Vec<(u64, JournalEntry)>,
    /// The calls of the last reply, in order.
    calls: Vec<String>,
    /// The calls that run.
    running: BTreeSet<String>,
    /// The calls that wait for an approval.
    asked: BTreeSet<String>,
    /// Approvals that the worker has not received.
    answers: Vec<(String, Approval)>,
    /// The calls whose approval was given and is not stored. A request that continues asks about them again.
    answered: BTreeSet<String>,
    is_canceled: bool,
    /// The request in this process, if it runs.
    live: Option<Live>,
}

/// A request that runs in the worker of this process.
struct Live {
    worker: Worker,
    items: mpsc::UnboundedReceiver<Item>,
    /// The step that was produced and is not stored.
    unstored: Step,
    /// Waits for the end of that step.
    waiter: Option<oneshot::Sender<()>>,
    /// Whether there are events that consumers have not received.
    has_events: bool,
    /// JSON size of the stored, unpublished events, in bytes.
    bytes: usize,
    /// The time at which they are published.
    due: Instant,
}

impl Attempt {
    pub(crate) fn new(host: Arc<Host>, id: String, submission: Submission) -> Self {
        Self {
            host,
            id,
            submission,
            start: None,
            entries: Vec::new(),
            calls: Vec::new(),
            running: BTreeSet::new(),
            asked: BTreeSet::new(),
            answers: Vec::new(),
            answered: BTreeSet::new(),
            is_canceled: false,
            live: None,
        }
    }

    /// Produces the next step if the request runs in this process, which means that no further step is stored. A step that
    /// is ready at once costs less: its start and its result are sent together.
    pub(crate) async fn running_step(&mut self) -> Option<Result<Step, HandlerError>> {
        match self.live {
            Some(_) => Some(self.next_step().await),
            None => None,
        }
    }

    /// Produces the next step: everything until the request waits for it to be stored, has ended, or some time has
    /// passed.
    ///
    /// # Errors
    /// If the worker does not accept the request. Restate tries again unless the error is terminal.
    pub(crate) async fn next_step(&mut self) -> Result<Step, HandlerError> {
        let live = match self.live.take() {
            Some(live) => live,
            None => self.go_live().await.map_err(|failure| self.host.fail(&self.id, failure))?,
        };
        let live = self.live.insert(live);
        for (call_id, approval) in std::mem::take(&mut self.answers) {
            live.worker.approve(&self.id, &call_id, approval);
        }
        if self.is_canceled {
            live.worker.cancel(&self.id);
        }
        live.collect().await;
        let is_full = live.bytes + json_size(&live.unstored.entries) >= FULL_PAGE;
        live.unstored.publishes = live.has_events && (is_full || Instant::now() >= live.due);
        let mut step = live.unstored.clone();
        if step.outcome().is_some() {
            // The journal gets the outcome before the worker publishes it.
            let _ = live.worker.wait(&self.id).await;
            step.messages = live.worker.conversation(&self.id);
        }
        Ok(step)
    }

    /// Submits the request to the worker, or continues it.
    async fn go_live(&self) -> Result<Live, Failure> {
        let is_new = self.start.is_none();
        let worker = self.host.open(self.submission.worker.as_deref()).await;
        let worker = worker
            .map_err(|failure| if is_new { Failure::of_new(failure) } else { Failure::repeats(failure) })?;
        // An earlier attempt in this process may not have ended.
        let forgotten = forget(&worker, &self.id);
        if tokio::time::timeout(MAX_STEP, forgotten).await.is_err() {
            return Err(Failure::repeats("an earlier attempt is still being stopped"));
        }
        let items = self.host.journal.attach(&self.id);
        let submitted = match &self.start {
            Some(start) => {
                let resumed = worker.resume(JournaledRequest::clone(start), self.entries.clone(), false);
                resumed.map(|(id, _)| id)
            }
            None => {
                let mut request = self.submission.clone().into_request();
                request.origin = Some(Origin::now(self.id.clone()));
                worker.submit_when_ready(request).await.map_err(ResumeError::Submit)
            }
        };
        match submitted {
            Ok(_) => {
                let due = Instant::now() + FLUSH;
                Ok(Live {
                    worker,
                    items,
                    unstored: Step::default(),
                    waiter: None,
                    has_events: false,
                    bytes: 0,
                    due,
                })
            }
            Err(error) => {
                self.host.journal.detach(&self.id);
                Err(match error {
                    ResumeError::Submit(SubmitError::UnknownTool(_) | SubmitError::ReservedParam(_)) => {
                        Failure::ends(400, error)
                    }
                    ResumeError::Submit(SubmitError::WorkerNotReady(NotReady {
                        state: WorkerState::Failed,
                        ..
                    })) if is_new => Failure::ends(503, error),
                    // Another process, or a later version, may be able to continue it.
                    ResumeError::Submit(_) | ResumeError::Entries(_) => Failure::repeats(error),
                })
            }
        }
    }

    /// Adds a stored step. The request continues if it waits for that.
    pub(crate) fn add(&mut self, step: Step) {
        if let Some(start) = &step.start {
            self.start = Some(start.clone());
        }
        for event in step.events() {
            match event {
                Event::TurnStarted { .. } => self.calls.clear(),
                Event::ToolCall { id, .. } => self.calls.push(id.clone()),
                Event::ToolStarted { id, .. } => drop(self.running.insert(id.clone())),
                Event::ToolFinished { id, error, .. } => {
                    let has_run = self.running.remove(id);
                    self.asked.remove(id);
                    if error.as_ref().is_some_and(|error| has_run && self.fails_request(error)) {
                        // The later calls are abandoned, without an event.
                        for later in self.calls.iter().skip_while(|call| *call != id) {
                            self.running.remove(later);
                            self.asked.remove(later);
                        }
                    }
                }
                Event::Approval { id, answer: None, .. } if !self.answered.contains(id) => {
                    self.asked.insert(id.clone());
                }
                Event::Approval { id, answer: Some(_), .. } => {
                    self.asked.remove(id);
                    self.answered.remove(id);
                }
                // The calls are opened again.
                Event::Resumed { .. } => self.running.clear(),
                _ => {}
            }
        }
        self.entries.extend(step.entries);
        if let Some(live) = &mut self.live {
            let stored = std::mem::take(&mut live.unstored);
            if stored.publishes {
                (live.has_events, live.bytes, live.due) = (false, 0, Instant::now() + FLUSH);
            } else {
                live.bytes += json_size(&stored.entries);
            }
            // Fails only if the request has ended.
            live.waiter.take().map(|waiter| waiter.send(()));
        }
    }

    /// Whether the error of a tool fails the request, once the earlier calls are answered.
    fn fails_request(&self, error: &Value) -> bool {
        let on_error = self.start.as_ref().map(|start| start.config.on_tool_error);
        let is_answer = matches!(error["kind"].as_str(), Some("interrupted" | "error_result"));
        on_error == Some(OnFailure::Fail) && !is_answer
    }

    /// Stops the request in this process if it waits only for approvals, and returns these calls; otherwise returns no
    /// calls. The request does not keep its slot, because an answer may take days.
    pub(crate) fn suspend_for_approvals(&mut self) -> Vec<String> {
        if !self.running.is_empty() || self.asked.is_empty() {
            return Vec::new();
        }
        self.stop();
        self.asked.iter().cloned().collect()
    }

    /// Answers an approval request.
    pub(crate) fn approve(&mut self, call_id: String, approval: Approval) {
        self.asked.remove(&call_id);
        self.answered.insert(call_id.clone());
        self.answers.push((call_id, approval));
    }

    /// Stops the request in this process, without a trace in its journal.
    fn stop(&mut self) {
        if let Some(Live { worker, .. }) = self.live.take() {
            self.host.journal.detach(&self.id);
            worker.suspend(&self.id);
            let id = self.id.clone();
            tokio::spawn(async move { forget(&worker, &id).await });
        }
    }

    /// Cancels the request.
    pub(crate) fn cancel(&mut self) {
        self.is_canceled = true;
    }
}

impl Live {
    /// Adds the next items of the worker to the step.
    async fn collect(&mut self) {
        let end = Instant::now() + MAX_STEP;
        while self.waiter.is_none() && self.unstored.outcome().is_none() && !self.unstored.is_full() {
            let until = if self.has_events { end.min(self.due) } else { end };
            let item = tokio::select! {
                biased;
                item = self.items.recv() => item,
                () = sleep_until(until) => None,
            };
            match item {
                Some(Item::Begin(start)) => self.unstored.start = Some(start),
                Some(Item::Entries(at_ms, entries)) => {
                    self.has_events = true;
                    self.unstored.entries.extend(entries.into_iter().map(|entry| (at_ms, entry)));
                }
                Some(Item::Commit(waiter)) => self.waiter = Some(waiter),
                None => return,
            }
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.stop();
    }
}

fn json_size(entries: &[(u64, JournalEntry)]) -> usize {
    serde_json::to_vec(entries).map_or(0, |json| json.len())
}

/// Waits until a request has ended in this process, and removes it.
async fn forget(worker: &Worker, id: &str) {
    if worker.wait(id).await.is_ok() {
        let _ = worker.take_result(id);
    }
}
