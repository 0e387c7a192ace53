//! Execution of calls.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::BudgetUnit;
use deftool_lang::tool::{CallContext, ToolCall, ToolErrorKind};
use deftool_worker::Approvals;
use serde_json::Value;

use super::super::dice::Dice;
use super::super::faults::Fault;
use super::super::invariants::{Invariant, Violation};
use super::super::tools::{Generation, SLOW_LIMIT, ToolBehavior};
use super::Simulation;

impl Simulation {
    /// Returns the newest tools to the worker. Sometimes panics.
    pub(in super::super) fn current(&self) -> Arc<Generation> {
        let in_submit = self.ledger().in_submit;
        if !in_submit && !self.plan.calm && self.source.lock().unwrap().below(0..300) == 0 {
            let now = self.now();
            self.ledger().source_panicked = Some(now);
            self.count("source panics");
            std::panic::resume_unwind(Box::new("a bug of the source's"));
        }
        let tools = self.tools.lock().unwrap();
        Arc::clone(if self.fault == Some(Fault::StaleTools) { &tools.1 } else { &tools.0 })
    }

    pub(in super::super) fn begin_call(
        &self,
        generation: &Generation,
        call: &ToolCall,
        context: &CallContext,
    ) -> ToolBehavior {
        let number = number_in(&context.job_name);
        let now = self.now();
        let mut ledger = self.ledger();
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let limit = context.timeout.expect("a limit");
        let nth = case.executed.len() as u64;
        let (behavior, feature) =
            ToolBehavior::of(&mut Dice::of(self.plan.seed, "deed", &[number as u64, nth]), limit);
        let mut results = Vec::new();
        let mut check = |invariant, holds: bool, how: &str| {
            if !holds {
                results.push(Err(Violation { invariant, how: format!("case {number}, {call:?}: {how}") }));
            }
        };
        check(
            Invariant::ExecutedOnce,
            case.executed.insert(call.id.clone(), None).is_none(),
            "executed twice",
        );
        let own = if call.name == "slow" { SLOW_LIMIT } else { self.plan.config.timers.tool };
        check(Invariant::PinnedTools, limit == own, "wrong time limit");
        check(
            Invariant::ExecutedOnce,
            !case.is_over && case.id == context.request_id,
            "executed without a running request",
        );
        let run = &self.plan.config.run;
        check(Invariant::ExecutedOnce, run.parallel || case.running.is_empty(), "executed concurrently");
        let needs = call.name == "ask" && self.plan.config.approvals != Approvals::Allow;
        check(
            Invariant::ExecutedOnce,
            !needs || case.allowed.contains(&call.id),
            "executed without approval",
        );
        check(Invariant::ExecutedOnce, !generation.is_exit(&call.name), "an exit call executed");
        check(
            Invariant::PinnedTools,
            generation.accepts(&call.name, &call.arguments),
            "arguments violate the schema",
        );
        let budget = run.tool_budget as usize;
        let executed = case.executed.len();
        if let Some(turn) = case.turns.last_mut() {
            turn.is_paid = true;
            check(
                Invariant::PinnedTools,
                turn.generation.number == generation.number,
                "run with the tools of another turn",
            );
        }
        let paid = match run.budget_unit {
            BudgetUnit::Call => executed,
            BudgetUnit::Iteration => case.turns.iter().filter(|turn| turn.is_paid).count(),
        };
        check(Invariant::Budget, paid <= budget, "the budget is exceeded");
        results.push(case.in_time(now));
        let overlaps = !case.running.is_empty();
        case.running.insert(call.id.clone(), now + limit + Duration::from_secs(1));
        ledger.count(feature);
        if overlaps {
            ledger.count("calls overlap");
        }
        for result in results {
            ledger.note(result);
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {} {} starts: {:?}", call.name, call.id, behavior.after));
        self.observe();
        behavior
    }

    /// Records the end of a call. `None` means that the call was abandoned.
    pub(in super::super) fn end_call(
        &self,
        job: &str,
        call: &str,
        end: Option<Result<&Value, ToolErrorKind>>,
    ) {
        let number = number_in(job);
        let mut ledger = self.ledger();
        let Some(case) = ledger.cases.get_mut(&number) else { return };
        if case.running.remove(call).is_none() {
            return;
        }
        case.due = Some((self.now(), "the step after a tool"));
        // A call is abandoned at its time limit, which is a failure, or at the end of the request.
        let kind = end.map_or(Some(ToolErrorKind::Timeout), Result::err);
        if let Some(Ok(result)) = end {
            case.executed.insert(call.to_owned(), Some(result.clone()));
        }
        if let Some(turn) = case.turns.last_mut() {
            turn.call_ends.push(kind);
        }
        if end.is_none() {
            ledger.count("tool is abandoned");
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {call} ends: {kind:?}"));
    }
}

/// Returns the number of a case from its job name.
fn number_in(text: &str) -> usize {
    let digits: String = text.chars().skip("case ".len()).take_while(char::is_ascii_digit).collect();
    digits.parse().expect("the number of a case")
}
