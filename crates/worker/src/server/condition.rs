//! The state of a worker and its server.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The state of a worker. It accepts requests only in `Ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// The server is starting or waits for a restart.
    Running,
    /// The server answers. A worker with a plain endpoint is ready until a probe fails.
    Ready,
    /// The server cannot be started or failed too often, or the endpoint rejects requests.
    Failed,
    /// The worker was stopped.
    Stopped,
}

impl WorkerState {
    /// Returns the stable name.
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

/// A snapshot of a worker and its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// The state.
    pub state: WorkerState,
    /// Start of this state.
    pub since: SystemTime,
    /// The reason why it is not ready.
    pub reason: Option<String>,
    /// Number of restarts of the server.
    pub restarts: u32,
    /// Process id of the server.
    pub pid: Option<u32>,
    /// Base URL of the server.
    pub endpoint: Option<String>,
    /// The last lines of the server's output, oldest first.
    pub recent_logs: Vec<String>,
    /// Maximum concurrent requests.
    pub slots: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests that wait for a slot.
    pub queued: usize,
}

/// An error: the worker does not accept requests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the worker is {state}, not ready{}", because(reason.as_deref()))]
pub struct NotReady {
    /// The state of the worker.
    pub state: WorkerState,
    /// The reason for this state.
    pub reason: Option<String>,
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// The state of the worker and the observed facts about its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) state: WorkerState,
    pub(crate) since: SystemTime,
    pub(crate) reason: Option<String>,
    pub(crate) restarts: u32,
    pub(crate) pid: Option<u32>,
    pub(crate) endpoint: Option<String>,
}

impl Condition {
    pub(crate) fn new(state: WorkerState, reason: Option<String>) -> Self {
        let since = SystemTime::now();
        Self { state, since, reason, restarts: 0, pid: None, endpoint: None }
    }

    /// Enters a state. Returns `false` if the state and the reason are unchanged.
    pub(crate) fn enter(&mut self, state: WorkerState, reason: Option<String>) -> bool {
        if (self.state, &self.reason) == (state, &reason) {
            return false;
        }
        if self.state != state {
            self.since = SystemTime::now();
        }
        (self.state, self.reason) = (state, reason);
        true
    }

    pub(crate) fn not_ready(&self) -> NotReady {
        NotReady { state: self.state, reason: self.reason.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_begins_once_also_if_its_reason_changes() {
        let reason = |text: &str| Some(String::from(text));
        let mut condition = Condition::new(WorkerState::Ready, reason("a"));
        condition.since = SystemTime::UNIX_EPOCH;
        for (state, text, is_changed, is_new) in [
            (WorkerState::Ready, "a", false, false),
            (WorkerState::Ready, "b", true, false),
            (WorkerState::Failed, "b", true, true),
        ] {
            assert_eq!(condition.enter(state, reason(text)), is_changed, "{state:?} {text}");
            assert_eq!(condition.since != SystemTime::UNIX_EPOCH, is_new, "{state:?} {text}");
        }
    }
}
