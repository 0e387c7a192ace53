//! The bounded queue between the requests and the thread that exports.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::operation::Operation;

/// Maximum number of operations in the queue, and maximum size of their content in bytes.
const MAX_OPERATIONS: usize = 2048;
const MAX_BYTES: usize = 64 << 20;

/// The sending end of the queue. Never blocks.
#[derive(Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Operation>,
    /// Size of the content in the queue.
    bytes: AtomicUsize,
    /// Number of operations with a span that were added or dropped, and of those that were exported.
    spans: AtomicU64,
    exported: AtomicU64,
}

impl Queue {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Operation>) {
        let (sender, receiver) = mpsc::channel(MAX_OPERATIONS);
        let bytes = AtomicUsize::new(0);
        (Self { sender, bytes, spans: AtomicU64::new(0), exported: AtomicU64::new(0) }, receiver)
    }

    /// Adds an operation, or drops it if the queue is full.
    pub(crate) fn send(&self, operation: Operation) {
        if operation.spans.is_some() {
            self.spans.fetch_add(1, Ordering::Relaxed);
        }
        let size = operation.size();
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        let is_full = size > 0 && before + size > MAX_BYTES;
        if is_full || self.sender.try_send(operation).is_err() {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Frees the space of a received operation.
    pub(crate) fn release(&self, operation: &Operation) {
        self.bytes.fetch_sub(operation.size(), Ordering::Relaxed);
    }

    pub(crate) fn add_exported(&self, count: usize) {
        self.exported.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Returns the number of spans that were not exported so far.
    pub(crate) fn missing(&self) -> u64 {
        self.spans.load(Ordering::Relaxed).saturating_sub(self.exported.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deftool_lang::tool::TraceContext;
    use deftool_record::{Redaction, Secrets};

    use super::*;
    use crate::content::Content;
    use crate::operation::{OperationKind, Spans};

    fn operation(redaction: &Arc<Redaction>, has_span: bool, size: usize) -> Operation {
        let own = TraceContext::new(1, 2).unwrap();
        Operation {
            kind: OperationKind::Tool,
            subject: String::new(),
            spans: has_span.then_some(Spans { own, parent: None }),
            start_ms: 0,
            end_ms: 0,
            attributes: Vec::new(),
            error: None,
            gaps_ms: Vec::new(),
            content: Some(Content::Call { arguments: "x".repeat(size), result: None }),
            redaction: Arc::clone(redaction),
        }
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let redaction = Arc::new(Redaction::new(None, Secrets::default()));
        let (queue, mut receiver) = Queue::new();
        for number in 0..MAX_OPERATIONS as u64 * 2 {
            queue.send(operation(&redaction, number % 2 == 0, 10));
        }
        assert_eq!((receiver.len(), queue.missing()), (MAX_OPERATIONS, MAX_OPERATIONS as u64));
        let mut received = 0;
        while let Ok(operation) = receiver.try_recv() {
            queue.release(&operation);
            received += usize::from(operation.spans.is_some());
        }
        queue.add_exported(received);
        assert_eq!(queue.missing(), (MAX_OPERATIONS - received) as u64);

        // Content is limited by its size.
        let large = MAX_BYTES / 8;
        for _ in 0..10 {
            queue.send(operation(&redaction, true, large));
        }
        assert_eq!(receiver.len(), 8);
        queue.release(&receiver.try_recv().unwrap());
        queue.send(operation(&redaction, true, large));
        assert_eq!(receiver.len(), 8);
    }

    #[test]
    fn after_the_end_everything_is_lost() {
        let redaction = Arc::new(Redaction::new(None, Secrets::default()));
        let (queue, receiver) = Queue::new();
        drop(receiver);
        queue.send(operation(&redaction, true, 10));
        assert_eq!((queue.missing(), queue.bytes.load(Ordering::Relaxed)), (1, 0));
    }
}
