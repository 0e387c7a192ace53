//! Events of one read, with adjacent events of the same kind merged.
//!
//! In: pieces in order. Out: at most one event for consecutive text, reasoning, or updates of one call; no event for an
//! empty piece.

use crate::event::ChatEvent;

/// The events of one read. Those before `from` belong to the caller and are not changed.
pub(super) struct Sink<'a> {
    events: &'a mut Vec<ChatEvent>,
    from: usize,
}

impl<'a> Sink<'a> {
    /// Creates a sink that appends the events of one read to `events`.
    pub(super) fn new(events: &'a mut Vec<ChatEvent>) -> Self {
        Self { from: events.len(), events }
    }

    pub(super) fn push(&mut self, event: ChatEvent) {
        self.events.push(event);
    }

    /// The last event of this read.
    fn last(&mut self) -> Option<&mut ChatEvent> {
        self.events.get_mut(self.from..)?.last_mut()
    }

    pub(super) fn push_text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(ChatEvent::Text { text }) = self.last() {
            text.push_str(piece);
        } else {
            self.push(ChatEvent::Text { text: piece.to_owned() });
        }
    }

    pub(super) fn push_reasoning(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(ChatEvent::Reasoning { text }) = self.last() {
            text.push_str(piece);
        } else {
            self.push(ChatEvent::Reasoning { text: piece.to_owned() });
        }
    }

    /// `size`: the size of the arguments so far.
    pub(super) fn push_call(&mut self, index: usize, name: &str, size: usize) {
        if let Some(ChatEvent::ToolCallDelta { index: last, name: known, size: before }) = self.last()
            && *last == index
        {
            *before = size;
            if known != name {
                name.clone_into(known);
            }
        } else {
            self.push(ChatEvent::ToolCallDelta { index, name: name.to_owned(), size });
        }
    }
}
