//! What a worker remembers of each request: its events, its status, its outcome.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::kept::Kept;
use crate::chat::Message;
use crate::request::{Approval, Event, Failure, INTERRUPTED, Outcome, RequestState, RequestStatus};

/// One request.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) cancel: CancellationToken,
    state: Mutex<State>,
    /// How many events there are.
    count: watch::Sender<usize>,
    /// Told once: the request has a slot.
    slot: Notify,
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
            slot: Notify::new(),
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

    /// The request has a slot from now on.
    pub(super) fn give_slot(&self) {
        self.slot.notify_one();
    }

    /// Waits for its slot. Asked once, by its driver.
    pub(super) async fn slot(&self) {
        self.slot.notified().await;
    }

    /// Whether the request's slot is to be given back: true once.
    pub(super) fn gives_back(&self) -> bool {
        !self.gave_back.swap(true, Ordering::AcqRel)
    }

    /// Whether its slot was given back.
    pub(super) fn gave_back(&self) -> bool {
        self.gave_back.load(Ordering::Acquire)
    }

    /// Ends a request whose driver is lost, with what its events hold.
    pub(super) fn abandon(&self, failure: Failure) {
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

/// A lock whose holder panicked still guards consistent data: every change is one assignment or push.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
