//! The next step for the driver, the progress of a request, and the tool budget.

use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::{BudgetUnit, Effect};
use deftool_lang::tool::ToolCall;
use serde::{Deserialize, Serialize};

use crate::{ChatRequest, Usage};

/// The next action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this request and pass the reply's events to [`Run::on_event`](super::Run::on_event).
    Stream(Arc<ChatRequest>),
    /// Run the listed calls that are not running yet, and pass each result to
    /// [`Run::on_tool_result`](super::Run::on_tool_result). Abandon running calls that are not listed.
    AnswerCalls(Vec<PendingCall>),
    /// Nothing: the reply is still being received.
    Wait,
    /// Nothing: the request has ended. See [`Run::outcome`](super::Run::outcome).
    Finished,
}

/// A call that must be answered now.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call.
    pub call: ToolCall,
    /// The tool's own time limit, if any.
    pub timeout: Option<Duration>,
    /// Whether the user must approve the call first. The answer goes to [`Run::on_approval`](super::Run::on_approval).
    pub needs_approval: bool,
    /// The consequence of running the call twice.
    pub effect: Effect,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Waiting for a reply.
    Running,
    /// A tool is running.
    ToolRunning,
    /// Finished: the model answered.
    Completed,
    /// Finished: the request failed.
    Failed,
    /// Finished: the request was canceled.
    Canceled,
}

/// A snapshot of a request's progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestStatus {
    /// The state.
    pub state: RequestState,
    /// Length of the emitted text, in characters.
    pub text_chars: usize,
    /// Time of the last input, in milliseconds since the request was submitted.
    pub last_progress_ms: u64,
    /// Remaining units of the tool budget.
    pub budget_left: u32,
    /// Number of replies whose normal calls were all answered.
    pub tool_iterations: u32,
    /// The running tool.
    pub running_tool: Option<String>,
    /// Total tokens and retries so far, if there are any.
    pub usage: Option<Usage>,
}

/// The remaining budget for calls of normal tools. Exit calls are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    unit: BudgetUnit,
    left: u32,
}

impl Budget {
    /// Creates a full budget.
    pub fn new(unit: BudgetUnit, units: u32) -> Self {
        Self { unit, left: units }
    }

    /// The number of remaining units.
    pub fn left(self) -> u32 {
        self.left
    }

    /// The unit of the budget.
    pub fn unit(self) -> BudgetUnit {
        self.unit
    }

    /// Returns how many calls of a reply with `calls` normal calls may run.
    pub(super) fn affords(self, calls: usize) -> usize {
        match self.unit {
            BudgetUnit::Iteration if self.left > 0 => calls,
            BudgetUnit::Iteration => 0,
            BudgetUnit::Call => calls.min(self.left as usize),
        }
    }

    /// Pays for one answered call. Returns whether the budget changed.
    pub(super) fn pay_call(&mut self) -> bool {
        self.pay(BudgetUnit::Call)
    }

    /// Pays for a reply whose calls are all answered. Returns whether the budget changed.
    pub(super) fn pay_iteration(&mut self) -> bool {
        self.pay(BudgetUnit::Iteration)
    }

    fn pay(&mut self, unit: BudgetUnit) -> bool {
        let pays = self.unit == unit && self.left > 0;
        self.left -= u32::from(pays);
        pays
    }
}
