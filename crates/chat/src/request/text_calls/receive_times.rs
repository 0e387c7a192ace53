//! The times at which the parts of a reply's text were received.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The times of the text that is not processed. Text is processed later than it is received, because it is held back.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ReceiveTimes {
    /// The position of the end of each read in the text, and its time. The first read contains the last processed byte.
    reads: VecDeque<(usize, u64)>,
    received: usize,
    processed: usize,
}

impl ReceiveTimes {
    /// Adds a read of `length` bytes.
    pub(super) fn receive(&mut self, length: usize, at_ms: u64) {
        self.received += length;
        match self.reads.back_mut() {
            Some((end, last_ms)) if *last_ms == at_ms => *end = self.received,
            Some(_) | None => self.reads.push_back((self.received, at_ms)),
        }
    }

    /// Processes the next `length` bytes.
    pub(super) fn process(&mut self, length: usize) {
        self.processed += length;
        while self.reads.front().is_some_and(|(end, _)| *end < self.processed) {
            self.reads.pop_front();
        }
    }

    /// Returns the time of the last processed byte.
    pub(super) fn last_processed_ms(&self) -> u64 {
        self.reads.front().map_or(0, |(_, at_ms)| *at_ms)
    }
}
