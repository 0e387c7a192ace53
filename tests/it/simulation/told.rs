//! What the events of one request told, and the laws over their order and meaning.

use std::collections::{BTreeMap, BTreeSet};

use deftool::request::{BudgetUnit, Event, Outcome, RequestState, RequestStatus, Signal};

use super::face::is_over;
use super::laws::{Broken, Law};

/// What one reader knows.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) events: usize,
    pub(super) text: String,
    pub(super) signals: Vec<Signal>,
    pub(super) turn: u32,
    /// Tools and budget that each turn began with.
    pub(super) turns: Vec<(String, u32)>,
    pub(super) budget_left: u32,
    pub(super) attempt: u32,
    /// Something of the turn's reply came.
    has_reply: bool,
    calls: BTreeMap<String, CallTold>,
    /// Calls of which it was told that they started.
    pub(super) started: BTreeSet<String>,
    /// The calls of the present batch.
    batch: Vec<String>,
    pub(super) answered: usize,
    pub(super) iterations: u32,
    pub(super) outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallTold {
    Called,
    Asked,
    Allowed,
    Refused,
    Started,
    Finished,
}

fn broken(law: Law, how: impl Into<String>) -> Result<(), Broken> {
    Err(Broken { law, how: how.into() })
}

impl Told {
    pub(super) fn new(budget_left: u32) -> Self {
        Self { budget_left, ..Self::default() }
    }

    /// Takes the next event.
    pub(super) fn hear(&mut self, event: &Event, id: &str, unit: BudgetUnit) -> Result<(), Broken> {
        if self.outcome.is_some() {
            return broken(Law::Order, format!("after the end came {event:?}"));
        }
        if (self.events == 0) != matches!(event, Event::Submitted { .. }) {
            return broken(Law::Order, format!("event {} is {event:?}", self.events));
        }
        self.events += 1;
        let is_calling = !self.batch.is_empty();
        match event {
            Event::Submitted { request_id, .. } => {
                if request_id != id {
                    return broken(Law::Order, format!("{id} is told as {request_id}"));
                }
            }
            Event::TurnStarted { turn, tools, budget_left } => {
                self.begin_turn(*turn, tools, *budget_left)?;
            }
            Event::Text { text } => {
                if text.is_empty() || self.turn == 0 || is_calling {
                    return broken(Law::Order, format!("text {text:?} out of place"));
                }
                self.has_reply = true;
                self.text.push_str(text);
            }
            Event::Reasoning { text } => {
                if text.is_empty() || self.turn == 0 || is_calling {
                    return broken(Law::Order, format!("reasoning {text:?} out of place"));
                }
                self.has_reply = true;
            }
            Event::Signal(signal) => {
                self.has_reply = true;
                self.signals.push(signal.clone());
            }
            Event::Retry { attempt, .. } => {
                if self.has_reply || is_calling || *attempt != self.attempt + 1 {
                    return broken(Law::Retry, format!("attempt {attempt} after {}", self.attempt));
                }
                self.attempt = *attempt;
            }
            Event::Budget { left, unit: told } => {
                if *told != unit || *left + 1 != self.budget_left {
                    return broken(Law::Budget, format!("{left} left of {}", self.budget_left));
                }
                self.budget_left = *left;
            }
            Event::ToolCall { id, .. } => {
                self.has_reply = true;
                self.batch.push(id.clone());
                if self.calls.insert(id.clone(), CallTold::Called).is_some() {
                    return broken(Law::Once, format!("a second call {id}"));
                }
            }
            Event::Approval { id, arguments: _, answer, .. } => {
                let to = match answer {
                    None => CallTold::Asked,
                    Some(deftool::request::Approval::Allowed) => CallTold::Allowed,
                    Some(deftool::request::Approval::Refused { .. }) => CallTold::Refused,
                };
                self.step(id, to)?;
            }
            Event::ToolStarted { id, .. } => {
                self.step(id, CallTold::Started)?;
                self.started.insert(id.clone());
            }
            Event::ToolFinished { id, ok, result, error, .. } => {
                self.step(id, CallTold::Finished)?;
                if *ok != result.is_some() || *ok == error.is_some() {
                    return broken(Law::Order, format!("{event:?} is neither nor"));
                }
                self.answered += 1;
                let is_open = |id: &String| self.calls.get(id) != Some(&CallTold::Finished);
                if !self.batch.iter().any(is_open) {
                    self.batch.clear();
                    self.iterations += 1;
                }
            }
            Event::Reloaded { .. } => {
                if is_calling {
                    return broken(Law::Pinned, "the tools changed inside a turn");
                }
            }
            Event::Warning { .. } => {}
            Event::Finished(outcome) => self.end(outcome)?,
        }
        Ok(())
    }

    fn begin_turn(&mut self, turn: u32, tools: &str, budget_left: u32) -> Result<(), Broken> {
        if turn != self.turn + 1 || !self.batch.is_empty() {
            return broken(Law::Order, format!("turn {turn} after {}", self.turn));
        }
        if budget_left != self.budget_left {
            return broken(Law::Budget, format!("turn {turn} begins with {budget_left}"));
        }
        self.turn = turn;
        self.turns.push((tools.to_owned(), budget_left));
        self.has_reply = false;
        self.attempt = 1;
        Ok(())
    }

    fn end(&mut self, outcome: &Outcome) -> Result<(), Broken> {
        if outcome.text != self.text {
            let how = format!("the events said {:?}, the outcome {:?}", self.text, outcome.text);
            return broken(Law::Text, how);
        }
        if outcome.signals != self.signals {
            let how = format!("the events told {:?}, the outcome {:?}", self.signals, outcome.signals);
            return broken(Law::Signals, how);
        }
        self.outcome = Some(outcome.clone());
        Ok(())
    }

    fn step(&mut self, id: &str, to: CallTold) -> Result<(), Broken> {
        let from = self.calls.insert(id.to_owned(), to);
        let is_legal = matches!(
            (from, to),
            (Some(CallTold::Called), CallTold::Asked | CallTold::Started | CallTold::Finished)
                | (Some(CallTold::Asked), CallTold::Allowed | CallTold::Refused)
                | (Some(CallTold::Allowed), CallTold::Started)
                | (Some(CallTold::Started | CallTold::Refused), CallTold::Finished)
        );
        if is_legal && self.batch.iter().any(|open| open == id) {
            return Ok(());
        }
        let law = if from == Some(to) { Law::Once } else { Law::Order };
        broken(law, format!("call {id} went from {from:?} to {to:?}"))
    }

    /// Holds a status against all events that there are.
    pub(super) fn agrees_with(&self, status: &RequestStatus) -> Result<(), Broken> {
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
            "{status:?} where {chars} characters, {} iterations, {} of the budget and calls {:?} were told",
            self.iterations, self.budget_left, self.batch
        );
        broken(Law::States, how)
    }
}
