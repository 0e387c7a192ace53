//! The events of one request as a record keeps them.
//!
//! A reply has thousands of pieces of text, of a few bytes each, and an [`Event`] takes some hundred: the pieces are kept
//! as parts of one string, and become events again when somebody asks for them.

use std::ops::Range;
use std::sync::Arc;

use crate::request::{Event, Outcome};

/// Events, in order.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: Vec<Entry>,
    /// Text and reasoning, in the order in which they came.
    words: String,
}

#[derive(Debug)]
enum Entry {
    Text(Range<usize>),
    Reasoning(Range<usize>),
    /// Held by others, too.
    Finished(Arc<Outcome>),
    Other(Arc<Event>),
}

impl Kept {
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
        // Nothing is added any more, and it may be kept for long.
        self.entries.shrink_to_fit();
        self.words.shrink_to_fit();
    }

    fn add(&mut self, text: &str) -> Range<usize> {
        let start = self.words.len();
        self.words.push_str(text);
        start..self.words.len()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The event of an index.
    pub(super) fn get(&self, index: usize) -> Option<Arc<Event>> {
        self.entries.get(index).map(|entry| self.event(entry))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Arc<Event>> {
        self.entries.iter().map(|entry| self.event(entry))
    }

    fn event(&self, entry: &Entry) -> Arc<Event> {
        let words = |range: &Range<usize>| self.words.get(range.clone()).unwrap_or_default().to_owned();
        match entry {
            Entry::Text(range) => Arc::new(Event::Text { text: words(range) }),
            Entry::Reasoning(range) => Arc::new(Event::Reasoning { text: words(range) }),
            Entry::Finished(outcome) => Arc::new(Event::Finished(Outcome::clone(outcome))),
            Entry::Other(event) => Arc::clone(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        let text = |text: &str| Event::Text { text: text.to_owned() };
        let reasoning = Event::Reasoning { text: String::from("hm, é") };
        let warning = Event::Warning { message: String::from("odd") };
        let events = [text("a"), reasoning, text(""), text("日本"), warning, text("b\n")];
        let mut kept = Kept::default();
        events.iter().cloned().for_each(|event| kept.push(event));
        assert_eq!(kept.len(), events.len());
        assert_eq!(kept.iter().map(|event| Event::clone(&event)).collect::<Vec<_>>(), events);
        assert_eq!(kept.get(3).as_deref(), Some(&events[3]));
        assert_eq!(kept.get(6), None);
    }

    #[test]
    fn a_piece_of_text_takes_little_more_than_its_bytes() {
        assert!(size_of::<Entry>() <= 24, "{}", size_of::<Entry>());
    }
}
