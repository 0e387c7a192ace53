//! A compact log of the events of one request.
//!
//! A reply has thousands of text deltas of a few bytes each, and an [`Event`] needs several hundred bytes. The log
//! stores the deltas as ranges of two strings and creates the events on access. After the end of the request, these
//! strings are those of the outcome, so that each text is stored once.

use std::sync::Arc;

use deftool_chat::request::{Event, Outcome};
use deftool_lang::text::append;
use deftool_script::prefetch;

/// The events of a request, in order.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    entries: Vec<Entry>,
    /// All events other than deltas.
    others: Vec<Arc<Event>>,
    text: String,
    reasoning: String,
    /// The last event. Contains the text and the reasoning of all events.
    outcome: Option<Arc<Outcome>>,
}

/// One event, in eight bytes.
#[derive(Debug, Clone, Copy)]
struct Entry(u64);

/// A decoded [`Entry`].
enum Decoded {
    /// Start and length in the text, in bytes.
    Text(usize, usize),
    /// Start and length in the reasoning, in bytes.
    Reasoning(usize, usize),
    /// Index in the other events.
    Other(usize),
}

impl Entry {
    const TEXT: u64 = 1;
    const REASONING: u64 = 2;
    /// The two highest bits are the kind, the next ones the length, the rest the start.
    const LENGTH_BITS: u32 = 22;
    const START_BITS: u32 = 40;

    /// Returns the entry of a delta; `None` if the delta is longer than 4 MiB or the text longer than 1 TiB.
    fn delta(kind: u64, start: usize, length: usize) -> Option<Self> {
        let (start, length) = (start as u64, length as u64);
        let fits = start >> Self::START_BITS == 0 && length >> Self::LENGTH_BITS == 0;
        fits.then_some(Self(kind << 62 | length << Self::START_BITS | start))
    }

    fn other(index: usize) -> Self {
        Self(index as u64)
    }

    fn decode(self) -> Decoded {
        let start = (self.0 & ((1 << Self::START_BITS) - 1)) as usize;
        let length = (self.0 >> Self::START_BITS & ((1 << Self::LENGTH_BITS) - 1)) as usize;
        match self.0 >> 62 {
            Self::TEXT => Decoded::Text(start, length),
            Self::REASONING => Decoded::Reasoning(start, length),
            _ => Decoded::Other(start),
        }
    }
}

impl EventLog {
    /// Loads the memory into the cache that the next delta of the text is written to.
    pub(super) fn prefetch_end(&self) {
        prefetch_end(&self.entries);
        prefetch_end(self.text.as_bytes());
    }

    /// Adds an event.
    pub(super) fn push(&mut self, event: Event) {
        let delta = match &event {
            Event::Text { text } => Entry::delta(Entry::TEXT, add(&mut self.text, text), text.len()),
            Event::Reasoning { text } => {
                Entry::delta(Entry::REASONING, add(&mut self.reasoning, text), text.len())
            }
            _ => None,
        };
        let entry = delta.unwrap_or_else(|| {
            self.others.push(Arc::new(event));
            Entry::other(self.others.len() - 1)
        });
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(16 + self.entries.len() / 4);
        }
        self.entries.push(entry);
    }

    /// Adds the last event.
    pub(super) fn finish(&mut self, outcome: Arc<Outcome>) {
        // The log is complete, and it may be kept for a long time.
        self.entries.shrink_to_fit();
        self.others.shrink_to_fit();
        if outcome.text == self.text {
            self.text = String::new();
        }
        if outcome.reasoning.as_deref().unwrap_or_default() == self.reasoning {
            self.reasoning = String::new();
        }
        self.outcome = Some(outcome);
    }

    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + usize::from(self.outcome.is_some())
    }

    /// Returns the event at an index.
    pub(super) fn get(&self, index: usize) -> Option<Arc<Event>> {
        match self.entries.get(index) {
            Some(entry) => self.event(*entry),
            None if index == self.entries.len() => {
                self.outcome.as_ref().map(|outcome| Arc::new(Event::Finished(Arc::clone(outcome))))
            }
            None => None,
        }
    }

    /// Returns the first event at or after an index that is not a delta, and its index.
    pub(super) fn step_from(&self, index: usize) -> Option<(usize, Arc<Event>)> {
        let rest = self.entries.iter().enumerate().skip(index);
        let is_other = |(_, entry): &(usize, &Entry)| matches!(entry.decode(), Decoded::Other(_));
        let step = rest.filter(is_other).find_map(|(index, entry)| {
            self.event(*entry).filter(|event| !is_delta(event)).map(|event| (index, event))
        });
        // The last event is not an entry.
        let last = self.entries.len().max(index);
        step.or_else(|| self.get(last).map(|event| (last, event)))
    }

    /// Returns all events.
    pub(super) fn iter(&self) -> impl Iterator<Item = Arc<Event>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn event(&self, entry: Entry) -> Option<Arc<Event>> {
        let outcome = self.outcome.as_deref();
        // A text that is empty here is in the outcome.
        let stored = |own: &str, last: Option<&str>, start: usize, length: usize| {
            let whole = if own.is_empty() { last.unwrap_or_default() } else { own };
            whole.get(start..start + length).unwrap_or_default().to_owned()
        };
        Some(match entry.decode() {
            Decoded::Text(start, length) => {
                let last = outcome.map(|outcome| outcome.text.as_str());
                Arc::new(Event::Text { text: stored(&self.text, last, start, length) })
            }
            Decoded::Reasoning(start, length) => {
                let last = outcome.and_then(|outcome| outcome.reasoning.as_deref());
                Arc::new(Event::Reasoning { text: stored(&self.reasoning, last, start, length) })
            }
            Decoded::Other(index) => Arc::clone(self.others.get(index)?),
        })
    }
}

/// Whether an event is a piece of the text or the reasoning. All other events are steps of the request.
pub(super) fn is_delta(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::Reasoning { .. })
}

/// Loads the end of a list into the cache.
pub(super) fn prefetch_end<T>(list: &[T]) {
    if let Some(last) = list.last() {
        prefetch(last);
    }
}

/// Appends a delta and returns its start.
fn add(text: &mut String, delta: &str) -> usize {
    let start = text.len();
    append(text, delta);
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_events_are_returned_unchanged() {
        let text = |text: &str| Event::Text { text: text.to_owned() };
        let reasoning = Event::Reasoning { text: String::from("hm, é") };
        let warning = Event::Warning { message: String::from("odd") };
        let long = "x".repeat(5 << 20);
        let events = [text("a"), reasoning, text(""), text("日本"), warning, text(&long), text("b\n")];
        let mut log = EventLog::default();
        events.iter().cloned().for_each(|event| log.push(event));
        let stored = |log: &EventLog| log.iter().map(|event| Event::clone(&event)).collect::<Vec<_>>();
        assert_eq!((log.len(), log.get(events.len())), (events.len(), None));
        assert_eq!(stored(&log), events);

        let whole = Outcome {
            text: format!("a日本{long}b\n"),
            reasoning: Some(String::from("hm, é")),
            ..Outcome::without_reply(None)
        };
        // If the outcome lacks a text, the log keeps it.
        for outcome in [whole, Outcome::without_reply(None)] {
            let mut log = EventLog::default();
            events.iter().cloned().for_each(|event| log.push(event));
            let outcome = Arc::new(outcome);
            log.finish(Arc::clone(&outcome));
            assert_eq!(log.len(), events.len() + 1);
            assert_eq!(stored(&log)[..events.len()], events);
            assert_eq!(log.get(events.len()).as_deref(), Some(&Event::Finished(outcome)));
            assert_eq!(log.get(events.len() + 1), None);
            let steps = std::iter::successors(log.step_from(0), |(index, _)| log.step_from(index + 1));
            let steps: Vec<usize> = steps.map(|(index, _)| index).collect();
            assert_eq!(steps, [4, events.len()], "the warning and the end");
        }
    }
}
