//! The record of a request in its worker: its events, status and outcome.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use deftool_chat::Message;
use deftool_chat::request::{
    Approval, Event, Failure, INTERRUPTED, JournalEntry, Outcome, RequestState, RequestStatus,
};
use deftool_process::lock;
use deftool_record::{Journal, RequestRecorder};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event_log::{EventLog, is_delta};
use crate::time::Clock;

/// Maximum wait for the last bytes of a server that was lost.
const LAST_BYTES_LIMIT: Duration = Duration::from_secs(1);

/// One request.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    pub(crate) cancel: CancellationToken,
    pub(crate) clock: Clock,
    /// Set after the request was accepted, if it is recorded.
    pub(crate) recorder: OnceLock<RequestRecorder>,
    state: Mutex<State>,
    /// Notified once, when the request gets a slot.
    slot: Notify,
    slot_returned: AtomicBool,
    /// Whether a chat request is open.
    streams: AtomicBool,
    /// Whether the request continues in another process.
    is_suspended: AtomicBool,
    /// Notified when an approval is answered.
    answered: Notify,
}

#[derive(Debug)]
struct State {
    /// Calls that require approval, with the answers.
    approvals: HashMap<String, Option<Approval>>,
    /// The reason why the worker ends the request, if it does.
    stop_reason: Option<Failure>,
    /// When the server was lost.
    lost_at: Option<Instant>,
    events: EventLog,
    /// The readers that wait for any event.
    readers: Readers,
    /// The readers that wait for an event other than a delta.
    step_readers: Readers,
    status: RequestStatus,
    conversation: Vec<Arc<Message>>,
    outcome: Option<Arc<Outcome>>,
    /// The call whose arguments are being received.
    partial_call: Option<PartialCall>,
}

/// A tool call whose arguments are being received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialCall {
    /// The part of the tool's name that was received.
    pub name: String,
    /// The size of the arguments that were received, in bytes.
    pub size: usize,
}

/// The readers that wait for an event: usually one.
#[derive(Debug, Default)]
struct Readers {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Readers {
    fn add(&mut self, waker: &Waker) {
        if self.first.iter().chain(&self.others).any(|known| known.will_wake(waker)) {
            return;
        }
        match &self.first {
            None => self.first = Some(waker.clone()),
            Some(_) => self.others.push(waker.clone()),
        }
    }

    fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(Waker::wake);
    }
}

impl RequestRecord {
    pub(crate) fn new(status: RequestStatus, cancel: CancellationToken, clock: Clock) -> Self {
        let state = State {
            approvals: HashMap::new(),
            stop_reason: None,
            lost_at: None,
            events: EventLog::default(),
            readers: Readers::default(),
            step_readers: Readers::default(),
            status,
            conversation: Vec::new(),
            outcome: None,
            partial_call: None,
        };
        Self {
            cancel,
            clock,
            recorder: OnceLock::new(),
            state: Mutex::new(state),
            slot: Notify::new(),
            slot_returned: AtomicBool::new(false),
            streams: AtomicBool::new(false),
            is_suspended: AtomicBool::new(false),
            answered: Notify::new(),
        }
    }

    /// Loads the memory into the cache that the next event is written to.
    pub(crate) fn prefetch_end(&self) {
        lock(&self.state).events.prefetch_end();
    }

    /// Replaces the conversation, because the messages so far have changed.
    pub(crate) fn replace_conversation(&self, conversation: &[Arc<Message>]) {
        lock(&self.state).conversation = conversation.to_vec();
    }

    /// Adds events and updates the status. Does nothing after the end.
    pub(crate) fn publish(&self, events: Vec<Event>, status: RequestStatus, conversation: &[Arc<Message>]) {
        let mut state = lock(&self.state);
        if state.outcome.is_some() {
            return;
        }
        // It only grows, apart from `replace_conversation`.
        let known = state.conversation.len();
        state.conversation.extend_from_slice(conversation.get(known..).unwrap_or_default());
        let has_step = events.iter().any(|event| !is_delta(event));
        for event in events {
            match &event {
                Event::Finished(outcome) => {
                    state.events.finish(Arc::clone(outcome));
                    state.outcome = Some(Arc::clone(outcome));
                    continue;
                }
                // A request that continues asks again, and an answer may arrive before that event.
                Event::Approval { id, answer: None, .. } => {
                    state.approvals.entry(id.clone()).or_insert(None);
                }
                // A stored answer does not count.
                Event::Approval { id, answer: Some(_), .. } => drop(state.approvals.remove(id)),
                _ => {}
            }
            state.events.push(event);
        }
        state.status = status;
        if has_step {
            state.partial_call = None;
        }
        let readers = std::mem::take(&mut state.readers);
        let step_readers = has_step.then(|| std::mem::take(&mut state.step_readers));
        drop(state);
        readers.wake();
        step_readers.into_iter().for_each(Readers::wake);
    }

    /// Stores how much of a call was received. It is no event, because it only matters while the call is received.
    pub(crate) fn set_partial_call(&self, name: &str, size: usize) {
        lock(&self.state).partial_call = Some(PartialCall { name: name.to_owned(), size });
    }

    /// Adds a log line of a call to the recording and to `journal`. Does nothing after the end.
    pub(crate) fn log(&self, journal: Option<&Arc<dyn Journal>>, id: &str, call_id: &str, text: &str) {
        if lock(&self.state).outcome.is_some() {
            return;
        }
        let (at_ms, call_id, text) = (self.clock.ms_at(Instant::now()), call_id.to_owned(), text.to_owned());
        if let Some(recorder) = self.recorder.get() {
            recorder.log(at_ms, call_id.clone(), text.clone());
        }
        if let Some(journal) = journal {
            journal.append(id, at_ms, vec![JournalEntry::Log { call_id, log: text }]);
        }
    }

    /// Ends the request with its process. A request with a journal is suspended, unless it is canceled already.
    pub(crate) fn end(&self, has_journal: bool) {
        if has_journal && !self.cancel.is_cancelled() {
            self.suspend();
        } else {
            self.cancel.cancel();
        }
    }

    /// Stops the request in this process only.
    pub(crate) fn suspend(&self) {
        self.is_suspended.store(true, Ordering::SeqCst);
        self.cancel.cancel();
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::SeqCst)
    }

    /// Ends the request with a failure of its worker. The failure takes precedence over a concurrent cancel.
    pub(crate) fn stop_with(&self, failure: Failure) {
        lock(&self.state).stop_reason.get_or_insert(failure);
        self.cancel.cancel();
    }

    /// Ends the request with a failure of its server. What the server sent before is still read: its connection ends
    /// by itself.
    pub(crate) fn lose_server(&self, failure: Failure) {
        lock(&self.state).lost_at.get_or_insert_with(Instant::now);
        self.stop_with(failure);
    }

    /// Waits until reading a reply must stop: until a cancel or, after the loss of the server, for at most
    /// [`LAST_BYTES_LIMIT`].
    pub(crate) async fn wait_until_reading_stops(&self) {
        self.cancel.cancelled().await;
        let lost_at = lock(&self.state).lost_at;
        if let Some(lost_at) = lost_at {
            tokio::time::sleep_until(lost_at + LAST_BYTES_LIMIT).await;
        }
    }

    /// Marks the request as streaming until the result is dropped. Meanwhile, a loss of the server fails the request.
    pub(crate) fn stream(&self) -> Streaming<'_> {
        self.streams.store(true, Ordering::SeqCst);
        Streaming(self)
    }

    /// Whether a chat request is open.
    pub(crate) fn is_streaming(&self) -> bool {
        self.streams.load(Ordering::SeqCst) && lock(&self.state).outcome.is_none()
    }

    pub(crate) fn stop_reason(&self) -> Option<Failure> {
        lock(&self.state).stop_reason.clone()
    }

    /// Answers an approval. Returns `false` if no approval of this call is pending.
    pub(crate) fn approve(&self, call_id: &str, approval: Approval) -> bool {
        let mut state = lock(&self.state);
        if state.outcome.is_some() {
            return false;
        }
        let Some(answer @ None) = state.approvals.get_mut(call_id) else { return false };
        *answer = Some(approval);
        drop(state);
        self.answered.notify_waiters();
        true
    }

    /// Waits for the approval of a call.
    pub(crate) async fn approval(&self, call_id: &str) -> Approval {
        loop {
            let answered = self.answered.notified();
            tokio::pin!(answered);
            // Enabled before the check: an answer may arrive between check and wait.
            answered.as_mut().enable();
            let answer = lock(&self.state).approvals.get_mut(call_id).and_then(|answer| answer.clone());
            match answer {
                Some(approval) => return approval,
                None => answered.await,
            }
        }
    }

    pub(crate) fn status(&self) -> RequestStatus {
        lock(&self.state).status.clone()
    }

    pub(crate) fn conversation(&self) -> Vec<Arc<Message>> {
        lock(&self.state).conversation.clone()
    }

    pub(crate) fn outcome(&self) -> Option<Arc<Outcome>> {
        lock(&self.state).outcome.clone()
    }

    /// Returns the event at an index; `None` after the last one.
    fn event(&self, index: usize) -> Option<Arc<Event>> {
        lock(&self.state).events.get(index)
    }

    /// Waits for the event at an index; `None` after the last one.
    fn poll_event(&self, index: usize, context: &Context<'_>) -> Poll<Option<Arc<Event>>> {
        let mut state = lock(&self.state);
        let event = state.events.get(index);
        if event.is_some() || state.outcome.is_some() {
            return Poll::Ready(event);
        }
        state.readers.add(context.waker());
        Poll::Pending
    }

    /// Waits for the first event at or after an index that is not a delta. Also returns its index. `None` after the last
    /// one.
    fn poll_step(&self, index: usize, context: &Context<'_>) -> Poll<Option<(usize, Arc<Event>)>> {
        let mut state = lock(&self.state);
        let step = state.events.step_from(index);
        if step.is_some() || state.outcome.is_some() {
            return Poll::Ready(step);
        }
        state.step_readers.add(context.waker());
        Poll::Pending
    }

    /// Assigns a slot to the request.
    pub(crate) fn assign_slot(&self) {
        self.slot.notify_one();
    }

    /// Waits for the slot of the request. Called once, by its driver.
    pub(crate) async fn slot(&self) {
        self.slot.notified().await;
    }

    /// Marks the slot as returned. Returns `true` on the first call only.
    pub(crate) fn mark_slot_returned(&self) -> bool {
        !self.slot_returned.swap(true, Ordering::AcqRel)
    }

    /// Whether the slot was returned.
    pub(crate) fn is_slot_returned(&self) -> bool {
        self.slot_returned.load(Ordering::Acquire)
    }

    /// Ends a request after its driver panicked, also in its journal. The outcome is built from its events.
    pub(crate) fn abandon(&self, journal: Option<&Arc<dyn Journal>>, id: &str, failure: Failure) {
        if self.outcome().is_some() {
            return;
        }
        let mut outcome = Outcome::without_reply(Some(failure));
        let mut status = self.status();
        outcome.usage = status.usage;
        outcome.tool_iterations = status.tool_iterations;
        let mut turn_start = 0;
        for event in lock(&self.state).events.iter() {
            match &*event {
                Event::TurnStarted { .. } => turn_start = outcome.text.len(),
                Event::Text { text } => outcome.text.push_str(text),
                Event::Reasoning { text } => {
                    outcome.reasoning.get_or_insert_default().push_str(text);
                }
                Event::Signal(signal) => outcome.signals.push(signal.clone()),
                _ => {}
            }
        }
        status.state = RequestState::Failed;
        status.running_tool = None;
        let mut conversation = self.conversation();
        let text = outcome.text.get(turn_start..).unwrap_or_default().trim();
        if !text.is_empty() {
            let content = format!("{text}\n\n{INTERRUPTED}");
            conversation.push(Arc::new(Message::Assistant {
                content,
                tool_calls: Vec::new(),
                received: None,
            }));
        }
        let events = vec![Event::Finished(Arc::new(outcome))];
        if let Some(journal) = journal.filter(|_| !self.is_suspended()) {
            let entries = events.iter().cloned().map(JournalEntry::Event).collect();
            journal.append(id, self.clock.ms_at(Instant::now()), entries);
        }
        self.publish(events, status, &conversation);
    }
}

/// A guard: the request is streaming while it exists.
pub(crate) struct Streaming<'r>(&'r RequestRecord);

impl Drop for Streaming<'_> {
    fn drop(&mut self) {
        self.0.streams.store(false, Ordering::SeqCst);
    }
}

/// A stream of the events of one request, from an offset.
#[derive(Debug)]
pub struct EventStream {
    record: Arc<RequestRecord>,
    next: usize,
}

impl EventStream {
    pub(crate) fn new(record: Arc<RequestRecord>, offset: usize) -> Self {
        Self { record, next: offset }
    }

    /// Returns the call whose arguments the request is receiving, once its name is known.
    pub fn partial_call(&self) -> Option<PartialCall> {
        lock(&self.record.state).partial_call.clone().filter(|call| !call.name.is_empty())
    }

    /// Returns the next event if it is already available.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        let event = self.record.event(self.next)?;
        self.next += 1;
        Some(event)
    }

    /// Returns the next event; `None` after `finished`.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let event = poll_fn(|context| self.record.poll_event(self.next, context)).await?;
        self.next += 1;
        Some(event)
    }

    /// Returns the next event that is not a delta of the text or the reasoning; `None` after `finished`. Deltas do not
    /// wake the task.
    pub async fn next_step(&mut self) -> Option<Arc<Event>> {
        let (index, event) = poll_fn(|context| self.record.poll_step(self.next, context)).await?;
        self.next = index + 1;
        Some(event)
    }
}

/// An error: the result is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// Unknown request id.
    #[error("unknown request; its result may have been released")]
    Unknown,
    /// The request has not finished.
    #[error("the request has not finished")]
    NotReady,
}
