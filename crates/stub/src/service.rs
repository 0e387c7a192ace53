//! Answers requests and stores them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::answer::Answer;
use crate::request::Received;

/// The maximum number of stored requests. The oldest are discarded.
const MAX_STORED: usize = 10_000;
/// The maximum size of the stored requests, in bytes.
const MAX_STORED_BYTES: usize = 64 << 20;

/// A function that returns the answer to a request.
pub(crate) type Handler = dyn Fn(&Received) -> Arc<Answer> + Send + Sync;

/// The state shared by the server's thread and its owner.
pub(crate) struct Service {
    handler: Box<Handler>,
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct Log {
    requests: VecDeque<StoredRequest>,
    /// The size of the requests, in bytes.
    size: usize,
    pub(crate) connections: usize,
    pub(crate) disconnects: Vec<Instant>,
    /// The number of changes so far.
    pub(crate) changes: u64,
}

/// A stored request. Raw bytes take much less memory than parsed JSON.
#[derive(Clone)]
struct StoredRequest {
    raw: Arc<[u8]>,
    at: Instant,
}

impl Service {
    pub(crate) fn new(handler: Box<Handler>) -> Self {
        Self { handler, log: Mutex::default(), changed: Condvar::new() }
    }

    /// Records a new connection.
    pub(crate) fn connected(&self) {
        self.change(|log| log.connections += 1);
    }

    /// Stores a request and returns its answer.
    pub(crate) fn answer(&self, request: Received) -> Arc<Answer> {
        let stored = StoredRequest { raw: Arc::from(request.raw.as_slice()), at: request.at };
        self.change(|log| {
            log.size += stored.raw.len();
            log.requests.push_back(stored);
            while log.requests.len() > MAX_STORED || log.size > MAX_STORED_BYTES {
                let Some(oldest) = log.requests.pop_front() else { break };
                log.size -= oldest.raw.len();
            }
        });
        (self.handler)(&request)
    }

    /// Records that a client closed the connection in the middle of an answer.
    pub(crate) fn disconnected(&self) {
        self.change(|log| {
            if log.disconnects.len() < MAX_STORED {
                log.disconnects.push(Instant::now());
            }
        });
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        let stored: Vec<StoredRequest> = self.with_log(|log| log.requests.iter().cloned().collect());
        let requests = stored.into_iter();
        requests.filter_map(|StoredRequest { raw, at }| Received::of_raw(raw.to_vec(), at)).collect()
    }

    pub(crate) fn with_log<T: Default>(&self, access: impl FnOnce(&mut Log) -> T) -> T {
        self.log.lock().map(|mut log| access(&mut log)).unwrap_or_default()
    }

    /// Waits until the number of changes is not `seen` any more. Returns whether that happened before `until`.
    pub(crate) fn wait_for_change(&self, seen: u64, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(log) = self.log.lock() else { return false };
        let waited = self.changed.wait_timeout_while(log, left, |log| log.changes == seen);
        waited.is_ok_and(|(_log, result)| !result.timed_out())
    }

    fn change(&self, change: impl FnOnce(&mut Log)) {
        self.with_log(|log| {
            change(log);
            log.changes += 1;
        });
        self.changed.notify_all();
    }
}
