//! Calls that reach their tools.

use std::sync::Arc;
use std::time::Duration;

use deftool::request::BudgetUnit;
use deftool::tool::{CallContext, ToolCall, ToolErrorKind};
use deftool::worker::Approvals;
use serde_json::Value;

use super::super::dice::Dice;
use super::super::faults::Fault;
use super::super::laws::{Broken, Law};
use super::super::tools::{Deed, Generation, SLOW_LIMIT};
use super::World;

impl World {
    /// What the worker is given when it asks for the newest tools; now and then a bug.
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
    ) -> Deed {
        let number = number_in(&context.job_name);
        let now = self.now();
        let mut ledger = self.ledger();
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let limit = context.timeout.expect("a limit");
        let nth = case.executed.len() as u64;
        let (deed, feature) = Deed::of(&mut Dice::of(self.plan.seed, "deed", &[number as u64, nth]), limit);
        let mut held = Vec::new();
        let mut hold = |law, holds: bool, how: &str| {
            if !holds {
                held.push(Err(Broken { law, how: format!("case {number}, {call:?}: {how}") }));
            }
        };
        hold(Law::Once, case.executed.insert(call.id.clone(), None).is_none(), "executed twice");
        let own = if call.name == "slow" { SLOW_LIMIT } else { self.plan.config.timers.tool };
        hold(Law::Pinned, limit == own, "not under its limit");
        hold(Law::Once, !case.is_over && case.id == context.request_id, "executed for no request");
        let run = &self.plan.config.run;
        hold(Law::Once, run.parallel || case.running.is_empty(), "executed beside another");
        let needs = call.name == "ask" && self.plan.config.approvals != Approvals::Allow;
        hold(Law::Once, !needs || case.allowed.contains(&call.id), "executed without approval");
        hold(Law::Once, !generation.is_exit(&call.name), "an exit call executed");
        let arguments = Value::Object(call.arguments.clone());
        hold(Law::Pinned, generation.accepts(&call.name, &arguments), "not as its schema says");
        let budget = run.tool_budget as usize;
        let executed = case.executed.len();
        if let Some(turn) = case.turns.last_mut() {
            turn.is_paid = true;
            hold(
                Law::Pinned,
                turn.generation.number == generation.number,
                "run with the tools of another turn",
            );
        }
        let paid = match run.budget_unit {
            BudgetUnit::Call => executed,
            BudgetUnit::Iteration => case.turns.iter().filter(|turn| turn.is_paid).count(),
        };
        hold(Law::Budget, paid <= budget, "the budget is overshot");
        held.push(case.in_time(now));
        let overlaps = !case.running.is_empty();
        case.running.insert(call.id.clone(), now + limit + Duration::from_secs(1));
        ledger.count(feature);
        if overlaps {
            ledger.count("calls overlap");
        }
        for result in held {
            ledger.note(result);
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {} {} begins: {:?}", call.name, call.id, deed.after));
        self.observe();
        deed
    }

    /// A call ended or was given up (`None`).
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
        case.due = Some((self.now(), "what follows a tool"));
        // A call that is given up by its time limit fails by it; whatever else gave it up ends the request.
        let kind = end.map_or(Some(ToolErrorKind::Timeout), Result::err);
        if let Some(Ok(result)) = end {
            case.executed.insert(call.to_owned(), Some(result.clone()));
        }
        if let Some(turn) = case.turns.last_mut() {
            turn.deeds.push(kind);
        }
        if end.is_none() {
            ledger.count("tool is given up");
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {call} ends: {kind:?}"));
    }
}

/// The number of a case in its job name.
fn number_in(text: &str) -> usize {
    let digits: String = text.chars().skip("case ".len()).take_while(char::is_ascii_digit).collect();
    digits.parse().expect("the number of a case")
}
