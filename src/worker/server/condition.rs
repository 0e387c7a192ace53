//! Where a worker stands.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Where a worker stands. Requests are taken in `Ready` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// Its server was started, or is to be started again, and has not answered yet.
    Running,
    /// Its server answers; or it has a plain endpoint, which is taken at its word until it is asked.
    Ready,
    /// Its server is dead or locked out, or its endpoint refuses.
    Failed,
    /// It was stopped.
    Stopped,
}

impl WorkerState {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

impl std::fmt::Display for WorkerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A worker and its server at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// Where it stands.
    pub state: WorkerState,
    /// Since when.
    pub since: SystemTime,
    /// Why it is not ready.
    pub reason: Option<String>,
    /// How often its server was started again.
    pub restarts: u32,
    /// The process number of its server.
    pub pid: Option<u32>,
    /// Where its server listens.
    pub endpoint: Option<String>,
    /// The last lines that its server wrote, the oldest first.
    pub recent_logs: Vec<String>,
    /// Requests that it takes at a time.
    pub slots: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests that wait for a slot.
    pub queued: usize,
}

/// Why a worker takes no requests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the worker is {state}, not ready{}", because(reason.as_deref()))]
pub struct NotReady {
    /// Where it stands.
    pub state: WorkerState,
    /// Why.
    pub reason: Option<String>,
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// What is known of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::worker) struct Condition {
    pub(in crate::worker) state: WorkerState,
    pub(in crate::worker) since: SystemTime,
    pub(in crate::worker) reason: Option<String>,
    pub(in crate::worker) restarts: u32,
    pub(in crate::worker) pid: Option<u32>,
    pub(in crate::worker) endpoint: Option<String>,
}

impl Condition {
    pub(in crate::worker) fn new(state: WorkerState, reason: Option<String>) -> Self {
        let since = SystemTime::now();
        Self { state, since, reason, restarts: 0, pid: None, endpoint: None }
    }

    /// It stands there from now on; false: it did before, for the same reason.
    pub(in crate::worker) fn enter(&mut self, state: WorkerState, reason: Option<String>) -> bool {
        if (self.state, &self.reason) == (state, &reason) {
            return false;
        }
        if self.state != state {
            self.since = SystemTime::now();
        }
        (self.state, self.reason) = (state, reason);
        true
    }

    pub(in crate::worker) fn not_ready(&self) -> NotReady {
        NotReady { state: self.state, reason: self.reason.clone() }
    }
}
