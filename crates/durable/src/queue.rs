//! The queue of unwritten items. Callers add items without waiting; a thread writes all items in one transaction.

use std::sync::Arc;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deftool_chat::request::{Event, JournalEntry};
use deftool_record::{Durability, JournalError, JournaledRequest};
use tokio::sync::oneshot;

/// Time to collect entries before a transaction that nobody waits for.
const COLLECT: Duration = Duration::from_millis(20);

/// Maximum number of bytes of text in the queue: the disk does not accept any more.
const MAX_TEXT: usize = 256 << 20;

/// Something to write.
#[allow(clippy::large_enum_variant)] // nearly all items are entries
pub(crate) enum Item {
    Request { start: Box<JournaledRequest>, context: String },
    Entry { request_id: Arc<str>, at_ms: u64, entry: JournalEntry },
}

/// A caller that waits until everything before it is written.
pub(crate) type Waiter = oneshot::Sender<Result<(), JournalError>>;

/// A queue between callers and the thread that writes.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    items: Vec<Item>,
    waiters: Vec<Waiter>,
    /// The durability that the waiters require.
    durability: Option<Durability>,
    /// Bytes of text in `items`.
    text: usize,
    is_closed: bool,
    /// The first error. Nothing is written after it.
    error: Option<JournalError>,
}

/// The content of the queue at one time.
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) durability: Durability,
}

impl Queue {
    pub(crate) fn push_request(&self, start: JournaledRequest, context: String) {
        let mut state = self.lock();
        if state.error.is_none() {
            state.items.push(Item::Request { start: Box::new(start), context });
            self.changed.notify_one();
        }
    }

    /// Adds the entries of one request. Deltas of text that directly follow each other become one entry.
    pub(crate) fn push_entries(&self, request_id: &str, at_ms: u64, entries: Vec<JournalEntry>) {
        let mut state = self.lock();
        if state.error.is_some() {
            return;
        }
        let id: Arc<str> = Arc::from(request_id);
        for entry in entries {
            if let JournalEntry::Event(Event::Text { text } | Event::Reasoning { text }) = &entry {
                state.text += text.len();
            }
            if let Some(Item::Entry { request_id, at_ms: at, entry: last }) = state.items.last_mut()
                && **request_id == *id
                && merges(last, &entry)
            {
                *at = at_ms;
                continue;
            }
            state.items.push(Item::Entry { request_id: Arc::clone(&id), at_ms, entry });
        }
        if state.text > MAX_TEXT {
            let error = JournalError(String::from("the journal cannot be written fast enough"));
            fail(&mut state, error);
        }
        self.changed.notify_one();
    }

    /// Adds a caller that waits. It receives the first error, if there was one.
    pub(crate) fn push_waiter(&self, waiter: Waiter, durability: Durability) {
        let mut state = self.lock();
        match &state.error {
            Some(error) => drop(waiter.send(Err(error.clone()))),
            // Nothing is written anymore. The caller receives an error, because the waiter is dropped.
            None if state.is_closed => {}
            None => {
                state.waiters.push(waiter);
                state.durability = state.durability.max(Some(durability));
            }
        }
        self.changed.notify_one();
    }

    /// Takes everything. Waits for the first item and then, unless there is a waiter, for more. Returns `None`
    /// after the queue was closed and is empty.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        while state.items.is_empty() && state.waiters.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + COLLECT;
        while state.waiters.is_empty() && !state.is_closed {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                break;
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.text = 0;
        let durability = state.durability.take().unwrap_or(Durability::Process);
        let (items, waiters) = (std::mem::take(&mut state.items), std::mem::take(&mut state.waiters));
        Some(Batch { items, waiters, durability })
    }

    /// Registers an error and sends it to all waiters.
    pub(crate) fn fail(&self, error: JournalError) {
        fail(&mut self.lock(), error);
    }

    /// Returns the first error.
    pub(crate) fn error(&self) -> Option<JournalError> {
        self.lock().error.clone()
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fail(state: &mut State, error: JournalError) {
    state.items.clear();
    for waiter in state.waiters.drain(..) {
        let _ = waiter.send(Err(error.clone()));
    }
    state.error.get_or_insert(error);
}

/// Appends the text of `next` to `last`, if both are deltas of the same kind.
fn merges(last: &mut JournalEntry, next: &JournalEntry) -> bool {
    match (last, next) {
        (JournalEntry::Event(Event::Text { text }), JournalEntry::Event(Event::Text { text: more }))
        | (
            JournalEntry::Event(Event::Reasoning { text }),
            JournalEntry::Event(Event::Reasoning { text: more }),
        ) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, text: &str) -> JournalEntry {
        let event = match kind {
            "text" => Event::Text { text: text.to_owned() },
            _ => Event::Reasoning { text: text.to_owned() },
        };
        JournalEntry::Event(event)
    }

    /// Returns the entries of a queue, with their requests and times.
    fn taken(queue: &Queue) -> Vec<(String, u64, JournalEntry)> {
        let items = queue.take().unwrap().items.into_iter();
        let entry = |item| match item {
            Item::Entry { request_id, at_ms, entry } => Some((request_id.to_string(), at_ms, entry)),
            Item::Request { .. } => None,
        };
        items.filter_map(entry).collect()
    }

    #[test]
    fn only_deltas_of_one_kind_and_request_are_merged() {
        let queue = Queue::default();
        for (id, at_ms, kind, text) in [
            ("a", 1, "text", "x"),
            ("a", 2, "text", "y"),
            ("a", 3, "reasoning", "z"),
            ("b", 4, "reasoning", "w"),
            ("a", 5, "reasoning", "v"),
        ] {
            queue.push_entries(id, at_ms, vec![entry(kind, text)]);
        }
        let expected = [
            ("a", 2, "text", "xy"),
            ("a", 3, "reasoning", "z"),
            ("b", 4, "reasoning", "w"),
            ("a", 5, "reasoning", "v"),
        ];
        assert_eq!(
            taken(&queue),
            expected.map(|(id, at, kind, text)| (id.to_owned(), at, entry(kind, text)))
        );
    }

    #[test]
    fn more_text_than_the_limit_is_an_error_after_which_nothing_is_written() {
        for kind in ["text", "reasoning"] {
            let queue = Queue::default();
            queue.lock().text = MAX_TEXT - 1;
            queue.push_entries("a", 1, vec![entry(kind, "x")]);
            assert_eq!((queue.error(), taken(&queue).len()), (None, 1));
            // What was taken does not count.
            queue.push_entries("a", 2, vec![entry(kind, "y")]);
            assert_eq!(queue.error(), None);
            queue.lock().text = MAX_TEXT;
            queue.push_entries("a", 3, vec![entry(kind, "z")]);
            let error = JournalError(String::from("the journal cannot be written fast enough"));
            queue.fail(JournalError(String::from("a consequence")));
            queue.lock().text = 0;
            queue.push_entries("a", 4, vec![entry(kind, "w")]);
            let (waiter, mut answer) = oneshot::channel();
            queue.push_waiter(waiter, Durability::Process);
            assert_eq!(answer.try_recv().unwrap(), Err(error.clone()));
            assert_eq!((queue.error(), queue.lock().items.len()), (Some(error), 0));
        }
    }

    #[test]
    fn the_strictest_durability_applies_and_a_closed_queue_has_no_waiter() {
        let queue = Queue::default();
        let mut answers = Vec::new();
        for durability in [Durability::Machine, Durability::Process] {
            let (waiter, answer) = oneshot::channel();
            queue.push_waiter(waiter, durability);
            answers.push(answer);
        }
        let batch = queue.take().unwrap();
        assert_eq!((batch.durability, batch.waiters.len()), (Durability::Machine, 2));
        queue.close();
        let (waiter, mut answer) = oneshot::channel();
        queue.push_waiter(waiter, Durability::Process);
        assert!(answer.try_recv().is_err() && queue.take().is_none());
    }
}
