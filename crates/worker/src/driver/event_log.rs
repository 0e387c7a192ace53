//! A compact log of the events of one request.
//!
//! A reply has thousands of text deltas of a few bytes each, and an [`Event`] needs several hundred bytes. The log
//! stores the deltas as ranges of one string and creates the events on access.

use std::ops::Range;
use std::sync::Arc;

use deftool_chat::request::{Event, Outcome};

/// The events of a request, in order.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    entries: Vec<Entry>,
    /// Text and reasoning, in the order of the events.
    text: String,
}

#[derive(Debug)]
enum Entry {
    Text(Range<usize>),
    Reasoning(Range<usize>),
    /// Shared with other owners.
    Finished(Arc<Outcome>),
    Other(Arc<Event>),
}

impl EventLog {
    /// Adds an event.
    pub(super) fn push(&mut self, event: Event) {
        let entry = match event {
            Event::Text { text } => Entry::Text(self.add(&text)),
            Event::Reasoning { text } => Entry::Reasoning(self.add(&text)),
            event => Entry::Other(Arc::new(event)),
        };
        self.entries.push(entry);
    }

    /// Adds the last event.
    pub(super) fn finish(&mut self, outcome: Arc<Outcome>) {
        self.entries.push(Entry::Finished(outcome));
        // The log is complete, and it may be kept for a long time.
        self.entries.shrink_to_fit();
        self.text.shrink_to_fit();
    }

    fn add(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the event at an index.
    pub(super) fn get(&self, index: usize) -> Option<Arc<Event>> {
        self.entries.get(index).map(|entry| self.event(entry))
    }

    /// Returns all events.
    pub(super) fn iter(&self) -> impl Iterator<Item = Arc<Event>> {
        self.entries.iter().map(|entry| self.event(entry))
    }

    fn event(&self, entry: &Entry) -> Arc<Event> {
        let slice = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default().to_owned();
        match entry {
            Entry::Text(range) => Arc::new(Event::Text { text: slice(range) }),
            Entry::Reasoning(range) => Arc::new(Event::Reasoning { text: slice(range) }),
            Entry::Finished(outcome) => Arc::new(Event::Finished(Outcome::clone(outcome))),
            Entry::Other(event) => Arc::clone(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_events_are_returned_unchanged() {
        let text = |text: &str| Event::Text { text: text.to_owned() };
        let reasoning = Event::Reasoning { text: String::from("hm, é") };
        let warning = Event::Warning { message: String::from("odd") };
        let events = [text("a"), reasoning, text(""), text("日本"), warning, text("b\n")];
        let mut log = EventLog::default();
        events.iter().cloned().for_each(|event| log.push(event));
        assert_eq!(log.len(), events.len());
        assert_eq!(log.iter().map(|event| Event::clone(&event)).collect::<Vec<_>>(), events);
        assert_eq!(log.get(3).as_deref(), Some(&events[3]));
        assert_eq!(log.get(6), None);
    }

    #[test]
    fn a_text_delta_has_little_overhead() {
        assert!(size_of::<Entry>() <= 24, "{}", size_of::<Entry>());
    }
}
