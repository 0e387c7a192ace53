//! What a worker remembers of each request: its events, its status, its outcome.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::kept::Kept;
use crate::chat::Message;
use crate::request::{
    Approval, Event, Failure, FinalState, FinishReason, INTERRUPTED, Outcome, RequestState, RequestStatus,
};

/// One request.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) cancel: CancellationToken,
    state: Mutex<State>,
    /// How many events there are.
    count: watch::Sender<usize>,
    gave_back: AtomicBool,
    /// Whether the server is asked for it now.
    streams: AtomicBool,
    /// A person answered.
    answered: Notify,
}

#[derive(Debug)]
struct State {
    /// Calls about which a person is asked; the answers, until they are taken.
    asked: HashMap<String, Option<Approval>>,
    /// Why the worker ends it, if it does.
    stop_reason: Option<Failure>,
    events: Kept,
    status: RequestStatus,
    conversation: Vec<Message>,
    outcome: Option<Arc<Outcome>>,
}

impl Record {
    pub(super) fn new(status: RequestStatus, cancel: CancellationToken) -> Self {
        let state = State {
            asked: HashMap::new(),
            stop_reason: None,
            events: Kept::default(),
            status,
            conversation: Vec::new(),
            outcome: None,
        };
        Self {
            cancel,
            state: Mutex::new(state),
            count: watch::Sender::new(0),
            gave_back: AtomicBool::new(false),
            streams: AtomicBool::new(false),
            answered: Notify::new(),
        }
    }

    /// Adds what happened. Nothing is added after the end.
    pub(super) fn publish(&self, events: Vec<Event>, status: RequestStatus, conversation: &[Message]) {
        let mut state = lock(&self.state);
        if state.outcome.is_some() {
            return;
        }
        // It only grows.
        let known = state.conversation.len();
        state.conversation.extend_from_slice(conversation.get(known..).unwrap_or_default());
        for event in events {
            match event {
                Event::Finished(outcome) => {
                    let outcome = Arc::new(outcome);
                    state.events.finish(Arc::clone(&outcome));
                    state.outcome = Some(outcome);
                }
                event => {
                    if let Event::Approval { id, answer: None, .. } = &event {
                        state.asked.insert(id.clone(), None);
                    }
                    state.events.push(event);
                }
            }
        }
        state.status = status;
        let count = state.events.len();
        drop(state);
        self.count.send_replace(count);
    }

    /// Ends the request for a reason of its worker's: it fails, whoever cancels it at the same time.
    pub(super) fn stop_with(&self, failure: Failure) {
        lock(&self.state).stop_reason.get_or_insert(failure);
        self.cancel.cancel();
    }

    /// From now on, until the answer is dropped, the loss of the server is the request's.
    pub(super) fn stream(&self) -> Streaming<'_> {
        self.streams.store(true, Ordering::SeqCst);
        Streaming(self)
    }

    /// Whether the server is asked for it now.
    pub(super) fn is_streaming(&self) -> bool {
        self.streams.load(Ordering::SeqCst) && lock(&self.state).outcome.is_none()
    }

    pub(super) fn stop_reason(&self) -> Option<Failure> {
        lock(&self.state).stop_reason.clone()
    }

    /// Answers a call; false: nobody asks about it, or not any more.
    pub(super) fn approve(&self, call_id: &str, approval: Approval) -> bool {
        let mut state = lock(&self.state);
        if state.outcome.is_some() {
            return false;
        }
        let Some(answer @ None) = state.asked.get_mut(call_id) else { return false };
        *answer = Some(approval);
        drop(state);
        self.answered.notify_waiters();
        true
    }

    /// Waits for the answer to a call.
    pub(super) async fn approval(&self, call_id: &str) -> Approval {
        loop {
            let answered = self.answered.notified();
            tokio::pin!(answered);
            // Before the look: an answer may come between look and wait.
            answered.as_mut().enable();
            let answer = lock(&self.state).asked.get_mut(call_id).and_then(|answer| answer.clone());
            match answer {
                Some(approval) => return approval,
                None => answered.await,
            }
        }
    }

    pub(super) fn status(&self) -> RequestStatus {
        lock(&self.state).status.clone()
    }

    pub(super) fn conversation(&self) -> Vec<Message> {
        lock(&self.state).conversation.clone()
    }

    pub(super) fn outcome(&self) -> Option<Arc<Outcome>> {
        lock(&self.state).outcome.clone()
    }

    /// The event of an index, and if there is none, whether none will come. One look: the last event may come
    /// between two.
    fn event(&self, index: usize) -> Result<Arc<Event>, IsOver> {
        let state = lock(&self.state);
        state.events.get(index).ok_or(IsOver(state.outcome.is_some()))
    }

    /// Whether the request's slot is to be given back: true once.
    fn gives_back(&self) -> bool {
        !self.gave_back.swap(true, Ordering::AcqRel)
    }

    /// Whether its slot was given back.
    pub(super) fn gave_back(&self) -> bool {
        self.gave_back.load(Ordering::Acquire)
    }

    /// Ends a request whose driver is lost, with what its events hold.
    pub(super) fn abandon(&self, failure: Failure) {
        let mut outcome = Outcome {
            state: FinalState::Failed,
            finish_reason: FinishReason::Failed,
            fail_reason: Some(failure.reason),
            kind: Some(failure.kind),
            detail: Some(failure.detail),
            text: String::new(),
            signals: Vec::new(),
            usage: None,
            tool_iterations: 0,
            reasoning: None,
            raw_text: None,
        };
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
        let words = outcome.text.get(turn_start..).unwrap_or_default().trim();
        if !words.is_empty() {
            let content = format!("{words}\n\n{INTERRUPTED}");
            conversation.push(Message::Assistant { content, tool_calls: Vec::new() });
        }
        self.publish(vec![Event::Finished(outcome)], status, &conversation);
    }
}

/// The time in which the server is asked for a request.
pub(super) struct Streaming<'r>(&'r Record);

impl Drop for Streaming<'_> {
    fn drop(&mut self) {
        self.0.streams.store(false, Ordering::SeqCst);
    }
}

/// Whether no event will come any more.
struct IsOver(bool);

/// The events of one request, from an offset on, as they come.
#[derive(Debug)]
pub struct EventStream {
    record: Arc<Record>,
    next: usize,
    count: watch::Receiver<usize>,
}

impl EventStream {
    pub(super) fn new(record: Arc<Record>, offset: usize) -> Self {
        let count = record.count.subscribe();
        Self { record, next: offset, count }
    }

    /// The next event; `None` after `finished`.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            self.count.borrow_and_update();
            match self.record.event(self.next) {
                Ok(event) => {
                    self.next += 1;
                    return Some(event);
                }
                Err(IsOver(true)) => return None,
                Err(IsOver(false)) => {}
            }
            if self.count.changed().await.is_err() {
                return None;
            }
        }
    }
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// No request of that id is remembered.
    #[error("no such request; its result may have been released")]
    Unknown,
    /// It is not over.
    #[error("the request is not over")]
    NotReady,
}

/// All requests of a worker, and its slots.
#[derive(Debug, Default)]
pub(super) struct Registry {
    /// In the order of their ids: what is done to all is done in an order that another run has, too.
    records: BTreeMap<String, Arc<Record>>,
    /// Requests that are over, oldest first.
    terminal: VecDeque<String>,
    in_flight: usize,
    /// Slots of the server that work on what nobody waits for.
    draining: usize,
}

impl Registry {
    /// Takes a slot for a request; `None`: none is free.
    pub(super) fn admit(&mut self, id: String, record: Arc<Record>, slots: usize) -> Option<()> {
        if self.in_flight + self.draining >= slots {
            return None;
        }
        self.in_flight += 1;
        self.records.insert(id, record);
        Some(())
    }

    /// The request is over: its slot is free, and of the results the oldest go. Only the first time.
    pub(super) fn release(&mut self, id: &str, record: &Record, keep: usize) {
        if !record.gives_back() {
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.terminal.push_back(id.to_owned());
        while self.terminal.len() > keep {
            if let Some(oldest) = self.terminal.pop_front() {
                self.records.remove(&oldest);
            }
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Record>> {
        self.records.get(id).cloned()
    }

    /// Forgets a request that is over.
    pub(super) fn take(&mut self, id: &str) -> Result<Arc<Record>, ResultError> {
        let record = self.get(id).ok_or(ResultError::Unknown)?;
        if record.outcome().is_none() {
            return Err(ResultError::NotReady);
        }
        self.records.remove(id);
        self.terminal.retain(|known| known != id);
        Ok(record)
    }

    pub(super) fn all(&self) -> Vec<Arc<Record>> {
        self.records.values().cloned().collect()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn draining(&self) -> usize {
        self.draining
    }

    /// A slot of the server has begun to drain.
    pub(super) fn begin_drain(&mut self) {
        self.draining += 1;
    }

    /// And is done, or not waited for any more.
    pub(super) fn end_drain(&mut self) {
        self.draining = self.draining.saturating_sub(1);
    }
}

/// A lock whose holder panicked still guards consistent data: every change is one assignment or push.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
