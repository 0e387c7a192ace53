//! Continues a restored request.
//!
//! Stored data has no authority. The journal restores what happened; what may happen next follows from the current
//! configuration and the current tools. A stored plan can only add a limit: of approval, validity, effect, time limit
//! and remaining budget, the stricter of stored and current applies. A stored approval does not count, so the user is
//! asked again.

use std::sync::Arc;

use deftool_lang::schema::ToolSet;
use deftool_lang::spec::{BudgetUnit, Effect, OnFailure};
use deftool_lang::tool::{ToolError, ToolErrorKind};

use super::batch::{BatchCall, CallPlan, CallState, Task};
use super::model::Budget;
use super::state::{Phase, Run, lost_attachments};
use crate::request::config::RunConfig;
use crate::request::event::Event;
use crate::request::outcome::{FailReason, Failure, FailureKind};
use crate::request::validate::check_again;

/// A request that was restored from its journal.
#[derive(Debug)]
pub struct RestoredRun {
    /// The request without the interrupted reply, if there is one.
    pub run: Run,
    /// The events of the request, without those of interrupted replies.
    pub events: Vec<Event>,
    /// The text of the interrupted reply.
    pub(super) superseded: String,
    /// The number of answered calls.
    pub(super) answered: u32,
}

/// What a request continues with.
#[derive(Debug)]
pub struct Resumption<'r> {
    /// The current configuration of the worker.
    pub config: RunConfig,
    /// The current tools that the request may call.
    pub tools: &'r ToolSet,
    /// Whether a user can decide about a call that may have had an effect.
    pub asks: bool,
}

impl RestoredRun {
    /// Continues the request. An interrupted reply is requested again. Every call without an answer is validated again.
    /// An interrupted call runs again if its tool allows it. Otherwise it requests the user's approval if `asks` is set,
    /// or is answered with an error. Returns the request and its earlier events.
    pub fn resume(self, now: Resumption<'_>, at_ms: u64) -> (Run, Vec<Event>) {
        let Self { mut run, events, superseded, answered } = self;
        if run.outcome.is_some() {
            return (run, events);
        }
        let Resumption { config, tools, asks } = now;
        run.advance_time(at_ms);
        run.events.push(Event::Resumed { superseded });
        run.events.extend(lost_attachments(run.conversation.iter().map(AsRef::as_ref)));
        run.adopt(config, answered);
        run.reopen_calls(tools, asks);
        (run, events)
    }
}

impl Run {
    /// Replaces the stored configuration. The handling of failed tools stays: the ended calls were handled by it.
    fn adopt(&mut self, current: RunConfig, answered: u32) {
        let stored = &self.config;
        let mut config = current.with_options(&self.start.options);
        config.on_tool_error = stored.on_tool_error;
        if config.budget_unit == stored.budget_unit {
            config.tool_budget = config.tool_budget.min(stored.tool_budget);
        }
        let spent = match config.budget_unit {
            BudgetUnit::Iteration => self.tool_iterations,
            BudgetUnit::Call => answered,
        };
        let mut left = config.tool_budget.saturating_sub(spent);
        // Units of another kind cannot be compared, but nothing left is nothing left.
        if config.budget_unit == self.budget.unit() || self.budget.left() == 0 {
            left = left.min(self.budget.left());
        }
        let budget = Budget::new(config.budget_unit, left);
        self.config = config;
        if budget != self.budget {
            self.budget = budget;
            self.emit_budget();
        }
    }

    /// Validates every call without an answer again, and decides what happens to it.
    fn reopen_calls(&mut self, tools: &ToolSet, asks: bool) {
        let budget = self.budget;
        let Phase::Calling(batch) = &mut self.phase else { return };
        let (mut open, mut violations, mut kind) = (Vec::new(), Vec::new(), FailureKind::InvalidArguments);
        for (index, call) in batch.calls.iter_mut().enumerate().filter(|(_, call)| call.is_unanswered()) {
            open.push(index);
            let may_have_had_effect = call.may_have_had_effect();
            let violation = call.restrict(tools);
            // An interrupted call that may have had an effect is answered below.
            if violation.is_some() && !may_have_had_effect {
                call.state = CallState::Waiting;
                if violation.as_ref().is_some_and(|error| error.kind == ToolErrorKind::UnknownTool) {
                    kind = FailureKind::UnknownTool;
                }
                violations.extend(violation.map(|error| error.message));
            }
        }
        let unaffordable = open.get(budget.affords(open.len())).copied();
        batch.affordable = batch.affordable.min(unaffordable.unwrap_or(batch.calls.len()));
        if !violations.is_empty() && self.config.on_invalid_arguments == OnFailure::Fail {
            return self.finish_failed(Failure::new(FailReason::ToolParseError, kind, violations.join("\n")));
        }
        for index in open {
            self.reopen_call(index, asks);
        }
        self.advance_batch();
    }

    fn reopen_call(&mut self, index: usize, asks: bool) {
        let at_ms = self.at_ms;
        let Phase::Calling(batch) = &mut self.phase else { return };
        let is_affordable = index < batch.affordable;
        let Some(call) = batch.calls.get_mut(index) else { return };
        match (&mut call.state, &call.task) {
            (state, _) if !is_affordable => *state = CallState::Waiting,
            (CallState::Running { .. }, Task::Run { plan: CallPlan { effect: Effect::Once, .. }, .. })
                if asks =>
            {
                let message = format!(
                    "the process ended while the tool was running: `{}` may have had an effect; it runs again only if \
                     you allow it",
                    call.name
                );
                call.was_interrupted = true;
                self.events.push(Event::Warning { message });
                self.ask(index);
            }
            (CallState::Running { .. }, Task::Run { plan: CallPlan { effect: Effect::Once, .. }, .. })
            | (CallState::Running { .. }, Task::Report { .. }) => {
                let message = "the process ended while the tool was running; it may have had an effect and was not \
                               run again";
                self.answer_call(index, Err(ToolError::new(ToolErrorKind::Interrupted, message)), 0);
            }
            (CallState::Running { .. }, Task::Run { plan: CallPlan { needs_approval: true, .. }, .. })
            | (CallState::Asked, Task::Run { .. }) => self.ask(index),
            (CallState::Running { since_ms }, Task::Run { .. }) => *since_ms = at_ms,
            (CallState::Asked, Task::Report { .. })
            | (CallState::Waiting | CallState::Answered { .. } | CallState::Failed { .. }, _) => {}
        }
    }
}

impl BatchCall {
    /// Whether the call was interrupted, and cannot run again without a decision of the user.
    fn may_have_had_effect(&self) -> bool {
        let is_once = matches!(self.task, Task::Run { plan: CallPlan { effect: Effect::Once, .. }, .. });
        is_once && matches!(self.state, CallState::Running { .. })
    }

    /// Applies the current definition of the tool. Returns why the call is no longer valid.
    fn restrict(&mut self, tools: &ToolSet) -> Option<ToolError> {
        let Task::Run { arguments, plan } = &self.task else { return None };
        match check_again(&self.name, arguments, tools) {
            Ok((arguments, current)) => {
                self.task = Task::Run { arguments, plan: plan.stricter(current) };
                None
            }
            Err(error) => {
                let arguments = Arc::clone(arguments.shared());
                self.task = Task::Report { arguments, error: error.clone() };
                Some(error)
            }
        }
    }
}
