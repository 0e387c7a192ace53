//! The events of one request as a reader receives them, and the invariants of their order and meaning.

use std::collections::{BTreeMap, BTreeSet};

use deftool_chat::request::{BudgetUnit, Event, Outcome, RequestState, RequestStatus, Signal};

use super::facade::is_over;
use super::invariants::{Invariant, Violation};

/// The state that follows from the events so far.
#[derive(Debug, Default)]
pub(super) struct EventTracker {
    pub(super) events: usize,
    pub(super) text: String,
    pub(super) signals: Vec<Signal>,
    pub(super) turn: u32,
    /// The tools and the budget at the start of each turn.
    pub(super) turns: Vec<(String, u32)>,
    pub(super) budget_left: u32,
    pub(super) attempt: u32,
    /// A part of the turn's reply was received.
    has_reply: bool,
    calls: BTreeMap<String, CallState>,
    /// The calls with a `tool_started` event.
    pub(super) started: BTreeSet<String>,
    /// The calls of the current batch.
    batch: Vec<String>,
    pub(super) answered: usize,
    pub(super) iterations: u32,
    pub(super) outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Called,
    AwaitingApproval,
    Allowed,
    Refused,
    Started,
    Finished,
}

fn violation(invariant: Invariant, how: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { invariant, how: how.into() })
}

impl EventTracker {
    pub(super) fn new(budget_left: u32) -> Self {
        Self { budget_left, ..Self::default() }
    }

    /// Records the next event and checks it.
    pub(super) fn record(&mut self, event: &Event, id: &str, unit: BudgetUnit) -> Result<(), Violation> {
        if self.outcome.is_some() {
            return violation(Invariant::EventOrder, format!("{event:?} after the end"));
        }
        if (self.events == 0) != matches!(event, Event::Submitted { .. }) {
            return violation(Invariant::EventOrder, format!("event {} is {event:?}", self.events));
        }
        self.events += 1;
        let is_calling = !self.batch.is_empty();
        match event {
            Event::Submitted { request_id, .. } => {
                if request_id != id {
                    return violation(Invariant::EventOrder, format!("{id} is reported as {request_id}"));
                }
            }
            Event::TurnStarted { turn, tools, budget_left } => {
                self.begin_turn(*turn, tools, *budget_left)?;
            }
            Event::Text { text } => {
                if text.is_empty() || self.turn == 0 || is_calling {
                    return violation(Invariant::EventOrder, format!("text {text:?} out of place"));
                }
                self.has_reply = true;
                self.text.push_str(text);
            }
            Event::Reasoning { text } => {
                if text.is_empty() || self.turn == 0 || is_calling {
                    return violation(Invariant::EventOrder, format!("reasoning {text:?} out of place"));
                }
                self.has_reply = true;
            }
            Event::Signal(signal) => {
                self.has_reply = true;
                self.signals.push(signal.clone());
            }
            Event::Retry { attempt, .. } => {
                if self.has_reply || is_calling || *attempt != self.attempt + 1 {
                    return violation(Invariant::Retry, format!("attempt {attempt} after {}", self.attempt));
                }
                self.attempt = *attempt;
            }
            Event::Budget { left, unit: reported } => {
                if *reported != unit || *left + 1 != self.budget_left {
                    return violation(Invariant::Budget, format!("{left} left of {}", self.budget_left));
                }
                self.budget_left = *left;
            }
            Event::ToolCall { id, .. } => {
                self.has_reply = true;
                self.batch.push(id.clone());
                if self.calls.insert(id.clone(), CallState::Called).is_some() {
                    return violation(Invariant::ExecutedOnce, format!("a second call {id}"));
                }
            }
            Event::Approval { id, arguments: _, answer, .. } => {
                let to = match answer {
                    None => CallState::AwaitingApproval,
                    Some(deftool_chat::request::Approval::Allowed) => CallState::Allowed,
                    Some(deftool_chat::request::Approval::Refused { .. }) => CallState::Refused,
                };
                self.step(id, to)?;
            }
            Event::ToolStarted { id, .. } => {
                self.step(id, CallState::Started)?;
                self.started.insert(id.clone());
            }
            Event::ToolFinished { id, ok, result, error, .. } => {
                self.step(id, CallState::Finished)?;
                if *ok != result.is_some() || *ok == error.is_some() {
                    return violation(
                        Invariant::EventOrder,
                        format!("{event:?} has both or neither of result and error"),
                    );
                }
                self.answered += 1;
                let is_open = |id: &String| self.calls.get(id) != Some(&CallState::Finished);
                if !self.batch.iter().any(is_open) {
                    self.batch.clear();
                    self.iterations += 1;
                }
            }
            Event::Reloaded { .. } => {
                if is_calling {
                    return violation(Invariant::PinnedTools, "the tools changed inside a turn");
                }
            }
            Event::ArgumentsRepaired { .. } | Event::Resumed { .. } | Event::Warning { .. } => {}
            Event::Finished(outcome) => self.end(outcome)?,
            other => return violation(Invariant::EventOrder, format!("unknown event {other:?}")),
        }
        Ok(())
    }

    fn begin_turn(&mut self, turn: u32, tools: &str, budget_left: u32) -> Result<(), Violation> {
        if turn != self.turn + 1 || !self.batch.is_empty() {
            return violation(Invariant::EventOrder, format!("turn {turn} after {}", self.turn));
        }
        if budget_left != self.budget_left {
            return violation(Invariant::Budget, format!("turn {turn} starts with {budget_left}"));
        }
        self.turn = turn;
        self.turns.push((tools.to_owned(), budget_left));
        self.has_reply = false;
        self.attempt = 1;
        Ok(())
    }

    fn end(&mut self, outcome: &Outcome) -> Result<(), Violation> {
        if outcome.text != self.text {
            let how = format!("the events contain {:?}, the outcome {:?}", self.text, outcome.text);
            return violation(Invariant::Text, how);
        }
        if outcome.signals != self.signals {
            let how = format!("the events contain {:?}, the outcome {:?}", self.signals, outcome.signals);
            return violation(Invariant::Signals, how);
        }
        self.outcome = Some(outcome.clone());
        Ok(())
    }

    fn step(&mut self, id: &str, to: CallState) -> Result<(), Violation> {
        let from = self.calls.insert(id.to_owned(), to);
        let is_legal = matches!(
            (from, to),
            (Some(CallState::Called), CallState::AwaitingApproval | CallState::Started | CallState::Finished)
                | (Some(CallState::AwaitingApproval), CallState::Allowed | CallState::Refused)
                | (Some(CallState::Allowed), CallState::Started)
                | (Some(CallState::Started | CallState::Refused), CallState::Finished)
        );
        if is_legal && self.batch.iter().any(|open| open == id) {
            return Ok(());
        }
        let invariant = if from == Some(to) { Invariant::ExecutedOnce } else { Invariant::EventOrder };
        violation(invariant, format!("call {id} went from {from:?} to {to:?}"))
    }

    /// Compares a status with the events so far.
    pub(super) fn agrees_with(&self, status: &RequestStatus) -> Result<(), Violation> {
        let is_calling = !self.batch.is_empty();
        let state_agrees = match status.state {
            RequestState::Running => !is_calling && self.outcome.is_none(),
            RequestState::ToolRunning => {
                is_calling && self.outcome.is_none() && status.running_tool.is_some()
            }
            RequestState::Completed | RequestState::Failed | RequestState::Canceled => self.outcome.is_some(),
        };
        let chars = self.text.chars().count();
        let budget_agrees = status.budget_left == self.budget_left;
        let iterations_agree = is_over(status.state) || status.tool_iterations == self.iterations;
        if state_agrees && status.text_chars == chars && budget_agrees && iterations_agree {
            return Ok(());
        }
        let how = format!(
            "{status:?}, but the events report {chars} characters, {} iterations, a budget of {} and calls {:?}",
            self.iterations, self.budget_left, self.batch
        );
        violation(Invariant::Status, how)
    }
}
