//! One world while it runs: its clock, its ledger, the present tools, and every step through which it goes.
//!
//! Server, tools and people act through this; after each step all requests are looked at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use deftool::chat::{Feature, Message};
use deftool::request::{Approval, BudgetUnit, Event, Outcome, RequestState};
use deftool::tool::{CallContext, ToolCall, ToolErrorKind};
use deftool::worker::{Approvals, Look, Origin, Outgoing, Page, ResultError};
use serde_json::Value;
use tokio::time::Instant;

use super::again::Tape;
use super::dice::Dice;
use super::face::{Face, Reader, Refusal, is_over};
use super::faults::Fault;
use super::laws::{Broken, Law};
use super::ledger::{Case, Exchange, LAST_WORD, Ledger, SLACK, Turn};
use super::oracle;
use super::own::Past;
use super::pages::{MAX_LOOK, Pages};
use super::plan::Plan;
use super::script::{Asked, Script};
use super::sent::{check_body, check_left, check_retry, check_tools, lose_answer};
use super::swaps::{self, next_form};
use super::told::Told;
use super::tools::{Deed, Generation, SLOW_LIMIT};

/// Results by the ids of their calls.
type Results = BTreeMap<String, Option<Value>>;

const NEXT_TRY: &str = "the next try";
/// Between two looks at a server that loads its model, one of them included.
const LONGEST_STEP: Duration = Duration::from_secs(10);

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) fault: Option<Fault>,
    start: Instant,
    ledger: Mutex<Ledger>,
    face: Mutex<Option<Face>>,
    tools: Mutex<(Arc<Generation>, Arc<Generation>)>,
    source: Mutex<Dice>,
    pages: Mutex<Pages>,
    probes: Mutex<Dice>,
    pub(super) tape: Mutex<Option<Tape>>,
}

impl World {
    pub(super) fn new(plan: Plan, fault: Option<Fault>, traces: bool) -> Arc<Self> {
        let first = Arc::new(Generation::new(plan.seed, 0));
        let source = Dice::of(plan.seed, "source", &[]);
        let pages = Pages::new(plan.seed);
        let tape = Tape::of(&plan, fault);
        let probes = Dice::of(plan.seed, "probes", &[]);
        let ledger = Ledger { trace: traces.then(Vec::new), ..Ledger::default() };
        Arc::new(Self {
            plan,
            fault,
            start: Instant::now(),
            ledger: Mutex::new(ledger),
            face: Mutex::new(None),
            tools: Mutex::new((Arc::clone(&first), first)),
            source: Mutex::new(source),
            pages: Mutex::new(pages),
            probes: Mutex::new(probes),
            tape: Mutex::new(tape),
        })
    }

    pub(super) fn set_face(&self, face: Option<Face>) {
        *self.face.lock().unwrap() = face;
    }

    pub(super) fn face(&self) -> Face {
        self.face.lock().unwrap().clone().expect("the worker runs")
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn trace(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(trace) = &mut self.ledger().trace {
            trace.push(format!("{:>12.6} {}", now.as_secs_f64(), line()));
        }
    }

    pub(super) fn count(&self, feature: &str) {
        self.ledger().count(feature);
    }

    /// Looks at every request: what can be seen from outside must hold at any moment.
    pub(super) fn observe(&self) {
        let Some(face) = self.face.lock().unwrap().clone() else { return };
        let ids: Vec<(usize, String)> =
            self.ledger().cases.iter().map(|(number, case)| (*number, case.id.clone())).collect();
        let statuses: Vec<_> = ids.into_iter().map(|(number, id)| (number, face.status(&id))).collect();
        let (in_flight, draining) = (face.in_flight(), face.draining());
        let known = statuses.iter().filter(|(_, status)| status.is_some()).count();
        let run = |status: &Option<deftool::request::RequestStatus>| {
            status.as_ref().is_some_and(|status| !is_over(status.state))
        };
        let running = statuses.iter().filter(|(_, status)| run(status)).count();
        let mut ledger = self.ledger();
        let (slots, keep) = (self.plan.config.slots, self.plan.config.keep_results);
        ledger.hold(Law::Slots, in_flight <= slots && in_flight == running, || {
            format!("{in_flight} in flight, {running} run, {slots} slots")
        });
        let now = self.now();
        let (least, most) = ledger.drains.bounds(now);
        // Of those whose end nobody has heard yet, any may have been given up.
        let unheard = ledger.cases.values().filter(|case| !case.is_over).count();
        ledger.hold(Law::Drains, (least..=most + unheard).contains(&draining), || {
            format!("{draining} slots are kept back where it must be {least} to {most} + {unheard}")
        });
        ledger.hold(Law::Kept, known <= in_flight + keep, || {
            format!("{known} are remembered, {in_flight} in flight, {keep} results to keep")
        });
        for (number, status) in statuses {
            let Some(case) = ledger.cases.get_mut(&number) else { continue };
            let is_gone = status.is_none() && !case.taken && !case.forgotten;
            case.forgotten |= is_gone;
            let seen = case.see(status);
            ledger.note(seen);
            if is_gone {
                ledger.count("a result is forgotten");
            }
        }
    }

    /// Something happened to a request; it must have been in time, and by `due` something must happen again.
    fn touch(&self, case: &mut Case, due: Option<(Duration, &'static str)>) -> Result<(), Broken> {
        let result = case.in_time(self.now());
        case.due = due;
        result
    }

    // Submitters.

    pub(super) fn submit(&self, number: usize, attempt: usize) -> Result<(String, Reader), Refusal> {
        let face = self.face();
        let plan = &self.plan.cases[number];
        let before = match plan.past {
            Past::Of(before) => self.ledger().cases.get(&before).filter(|case| case.is_over).map(|case| {
                let results = case.past.iter().chain(&case.executed);
                (case.id.clone(), results.map(|(id, result)| (id.clone(), result.clone())).collect())
            }),
            Past::Nothing | Past::Call | Past::Odd(_) => None,
        };
        let before: Option<(Vec<Message>, Results)> =
            before.and_then(|(id, past)| Some((face.conversation(&id)?, past)));
        let (before, past) = before.unzip();
        let follows = before.is_some();
        let messages = plan.past.messages(number, before);
        let tools = self.tools.lock().unwrap().0.clone();
        let is_known = plan.own.tools.iter().flatten().all(|name| tools.set.get(name).is_some());
        let is_fit = self.fault.is_some() || (is_known && !plan.own.is_reserved());
        let is_ready = !self.ledger().was_stopped && !self.ledger().is_unready;
        let free = face.in_flight() + face.draining() < self.plan.config.slots;
        let mut dice = Dice::of(self.plan.seed, "origin", &[number as u64]);
        let origin = Origin {
            request_id: format!("req_{number}"),
            submitted_at_ms: 1_700_000_000_000 + self.now().as_millis() as u64,
            zone: String::from("Europe/Paris"),
            local_time: String::from("2023-11-14 23:13"),
            id_seed: dice.number(),
        };
        let recorder = self.tape.lock().unwrap().as_ref().map(|tape| Arc::clone(&tape.recorder));
        self.ledger().in_submit = true;
        let taken = face.submit(plan, messages, origin, recorder);
        self.ledger().in_submit = false;
        self.trace(|| format!("case {number} is submitted ({attempt}): {taken:?}"));
        let mut ledger = self.ledger();
        match &taken {
            Ok(id) => {
                for feature in plan.own.features() {
                    ledger.count(feature);
                }
                match plan.past {
                    Past::Odd(_) => ledger.count("past: pieces"),
                    Past::Call => ledger.count("past: a call"),
                    Past::Of(_) if follows => ledger.count("past: of another request"),
                    Past::Of(_) | Past::Nothing => ledger.count("past: none"),
                }
                ledger.hold(Law::Pinned, is_fit, || String::from("a request was taken that is not fit"));
                ledger.hold(Law::Slots, is_ready, || String::from("a request was taken and nobody is ready"));
                ledger.hold(Law::Slots, free, || String::from("a request was taken and no slot was free"));
                let now = self.now();
                let forms = ledger.learned.clone();
                let past = past.unwrap_or_default();
                let mut case = Case {
                    id: id.clone(),
                    forms,
                    past,
                    due: Some((now, "the first turn")),
                    ..Case::default()
                };
                if let Some(total) = self.plan.config.timers.total {
                    case.must_end(now + total + LAST_WORD, "the end by :total");
                }
                ledger.cases.insert(number, case);
            }
            Err(Refusal::NoSlot) => {
                ledger.count("submit: no slot");
                ledger.hold(Law::Slots, !free, || String::from("a slot was free and a request refused"));
            }
            Err(Refusal::NotReady) => {
                ledger.count("submit: not ready");
                ledger.hold(Law::Slots, !is_ready, || {
                    String::from("the worker is ready and says that it is not")
                });
            }
            Err(Refusal::UnknownTool) => {
                ledger.count("submit: unknown tool");
                let holds = !is_known || self.fault.is_some();
                ledger.hold(Law::Pinned, holds, || String::from("a known tool is unknown"));
            }
            Err(Refusal::ReservedParam) => {
                ledger.count("submit: reserved parameter");
                ledger.hold(Law::Pinned, plan.own.is_reserved(), || String::from("a parameter is reserved"));
            }
            Err(Refusal::Odd(why)) => ledger.hold(Law::Slots, false, || why.clone()),
        }
        drop(ledger);
        self.observe();
        let id = taken?;
        let reader = face.events(&id, 0).expect("the request is remembered");
        Ok((id, reader))
    }

    pub(super) fn cancel(&self, number: usize) {
        let mut ledger = self.ledger();
        let Some(case) = ledger.cases.get_mut(&number) else { return };
        let id = case.id.clone();
        let feature = if case.is_over { "cancel: too late" } else { "cancel: in time" };
        if !case.is_over {
            case.canceled = true;
            case.must_end(self.now() + LAST_WORD, "the end by a cancel");
        }
        ledger.count(feature);
        drop(ledger);
        self.trace(|| format!("case {number} is canceled"));
        self.face().cancel(&id);
        self.observe();
    }

    pub(super) fn approve(&self, number: usize, call: &str, answer: Approval) {
        let id = self.ledger().cases[&number].id.clone();
        let face = self.face();
        let is_open = face.status(&id).is_some_and(|status| !is_over(status.state));
        let mut ledger = self.ledger();
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let is_asked = case.asked.remove(call) && is_open;
        case.due = Some((self.now(), "what follows an approval"));
        if answer == Approval::Allowed {
            case.allowed.insert(call.to_owned());
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {call} is answered {answer:?}"));
        let odd = face.approve(&id, "nobody's", Approval::Allowed);
        let taken = face.approve(&id, call, answer);
        let again = face.approve(&id, call, Approval::Allowed);
        self.ledger().hold(Law::States, taken == is_asked && !again && !odd, || {
            format!("{id}: an approval of {call} was taken: {taken}, asked: {is_asked}, again: {again}")
        });
        self.observe();
    }

    // The worker's owner.

    pub(super) fn reload(&self) {
        let mut tools = self.tools.lock().unwrap();
        let next = Arc::new(Generation::new(self.plan.seed, tools.0.number + 1));
        *tools = (next, Arc::clone(&tools.0));
        drop(tools);
        self.trace(|| String::from("the tools are reloaded"));
        self.count("reload");
    }

    pub(super) fn restart(&self) {
        let face = self.face();
        let now = self.now();
        let mut ledger = self.ledger();
        for case in ledger.cases.values_mut() {
            let status = face.status(&case.id);
            // One that did not begin yet waits for the server.
            if status.is_some_and(|status| status.state == RequestState::Running) && !case.turns.is_empty() {
                case.restarted = true;
                case.must_end(now + LAST_WORD, "the end by a restart");
            }
        }
        ledger.count("restart");
        drop(ledger);
        self.trace(|| String::from("the worker is restarted"));
        face.restart();
        self.observe();
    }

    pub(super) fn stop(&self) {
        let now = self.now();
        let mut ledger = self.ledger();
        for case in ledger.cases.values_mut().filter(|case| !case.is_over) {
            case.stopped = true;
            case.must_end(now + LAST_WORD, "the end by a stop");
        }
        ledger.was_stopped = true;
        ledger.drains.stop();
        ledger.count("stop");
        drop(ledger);
        self.trace(|| String::from("the worker is stopped"));
        self.face().stop();
        self.observe();
    }

    /// Takes a result, whether it is there or not.
    pub(super) fn take(&self, number: usize) {
        let Some(id) = self.ledger().cases.get(&number).map(|case| case.id.clone()) else { return };
        let face = self.face();
        let status = face.status(&id);
        let taken = face.take_result(&id);
        let after = face.status(&id);
        let mut ledger = self.ledger();
        let agrees = match (&status, &taken) {
            (None, Err(ResultError::Unknown)) => true,
            (Some(status), Err(ResultError::NotReady)) => !is_over(status.state) && after.is_some(),
            (Some(status), Ok(_)) => is_over(status.state) && after.is_none(),
            _ => false,
        };
        ledger.count(if taken.is_ok() { "take: there" } else { "take: not there" });
        ledger.hold(Law::States, agrees || self.fault.is_some(), || {
            format!("{id} was {status:?}, taken {taken:?}, then {after:?}")
        });
        if let (Ok(_), Some(case)) = (&taken, ledger.cases.get_mut(&number)) {
            case.taken = true;
        }
    }

    // Tools.

    /// What the worker is given when it asks for the newest tools; now and then a bug.
    pub(super) fn current(&self) -> Arc<Generation> {
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

    pub(super) fn begin_call(&self, generation: &Generation, call: &ToolCall, context: &CallContext) -> Deed {
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
    pub(super) fn end_call(&self, job: &str, call: &str, end: Option<Result<&Value, ToolErrorKind>>) {
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

    // The server.

    /// A request reaches the server.
    pub(super) fn begin_exchange(&self, outgoing: Outgoing) -> (usize, Script) {
        let Outgoing { request_id, turn, attempt, mut body, .. } = outgoing;
        let text = body.to_string();
        let number: usize = request_id.trim_start_matches("req_").parse().expect("the number of a case");
        let own = &self.plan.cases[number].own;
        let streams = body["stream"] == true;
        if self.fault == Some(Fault::Orphan) {
            lose_answer(&mut body);
        }
        let mut current = Arc::clone(&self.tools.lock().unwrap().0);
        if let Some(names) = &own.tools {
            current = Arc::new(current.only(names));
        }
        let config = &self.plan.config;
        let asked = Asked {
            generation: &current,
            body: &text,
            streams,
            attempt,
            stall: config.timers.stall,
            calm: self.plan.calm,
        };
        let numbers = [number as u64, u64::from(turn), u64::from(attempt)];
        let script = Script::write(&mut Dice::of(self.plan.seed, "script", &numbers), &asked);
        self.trace(|| format!("case {number} asks ({turn}, {attempt}): {text}"));
        self.trace(|| format!("case {number} is answered: {:?}", script.features));
        let limit = config.timers.headers.unwrap_or_default();
        let due = self.now() + if streams { limit } else { limit.max(Duration::from_secs(10)) };
        let id = self.ledger().cases[&number].id.clone();
        let budget_left = self.face().status(&id).map(|status| status.budget_left);
        let mut ledger = self.ledger();
        for feature in &script.features {
            ledger.count(*feature);
        }
        let mut last_turns = 0;
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let mut held = vec![self.touch(case, Some((due, "a head")))];
        if self.now() < case.not_before {
            let how = format!("{}: the next try comes before {:?}", case.id, case.not_before);
            held.push(Err(Broken { law: Law::Retry, how }));
        }
        let last = case.turns.last().and_then(|turn| turn.exchanges.last()).filter(|_| attempt > 1);
        let swap = last.and_then(|last| next_form(last, &case.forms, config.run.fallback));
        case.forms.extend(swap.map(swaps::bit));
        held.push(check_body(&body, &config.run, case, own));
        if turn as usize > case.turns.len() {
            let is_last = config.run.final_turn && budget_left == Some(0);
            last_turns += usize::from(is_last);
            held.push(check_tools(&body, &current, is_last, config, &case.forms));
            case.turns.push(Turn {
                generation: current,
                exchanges: Vec::new(),
                deeds: Vec::new(),
                is_paid: false,
            });
        }
        let exchanges = &mut case.turns[turn as usize - 1].exchanges;
        held.push(check_retry(exchanges, attempt, &body, streams, swap));
        let retries = exchanges.last().map_or(0, |last| last.retries + u32::from(swap.is_none()));
        exchanges.push(Exchange { retries, ..Exchange::new(attempt, body, streams, script.clone()) });
        if let Some(swap) = swap {
            ledger.count(format!("sent again {}", swap.describe()));
        }
        for result in held {
            ledger.note(result);
        }
        if last_turns > 0 {
            ledger.count("a last turn without budget");
        }
        drop(ledger);
        self.observe();
        (number, script)
    }

    fn with_exchange(
        &self,
        number: usize,
        change: impl FnOnce(&mut Exchange) -> Option<(Duration, &'static str)>,
    ) {
        let mut ledger = self.ledger();
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let in_time = case.in_time(self.now());
        let exchange = case.turns.last_mut().and_then(|turn| turn.exchanges.last_mut()).expect("it asked");
        if let Some(due) = change(exchange) {
            case.due = Some(due);
        }
        ledger.note(in_time);
        drop(ledger);
        self.observe();
    }

    /// The head is on its way to the worker.
    pub(super) fn head_comes(&self, number: usize) {
        let (now, timers) = (self.now(), &self.plan.config.timers);
        self.with_exchange(number, |exchange| Some(exchange.head_came(now, timers)));
        self.ledger().learn(number);
        self.trace(|| format!("case {number} gets a head"));
    }

    /// No head will come.
    pub(super) fn connection_fails(&self, number: usize) {
        self.with_exchange(number, |exchange| {
            exchange.is_answered = true;
            None
        });
    }

    /// Bytes are on their way, and with them the ends of so many frames.
    pub(super) fn bytes_come(&self, number: usize, bytes: usize, frames: usize) {
        let (now, timers) = (self.now(), &self.plan.config.timers);
        self.with_exchange(number, |exchange| exchange.bytes_came(frames, now, timers));
        self.trace(|| format!("case {number} gets {bytes} bytes"));
    }

    pub(super) fn body_ends(&self, number: usize) {
        let now = self.now();
        self.with_exchange(number, |exchange| {
            exchange.is_over = true;
            Some((now, "what follows a reply"))
        });
        self.trace(|| format!("case {number}: the body ends"));
    }

    /// Somebody wants to know whether the server takes requests.
    pub(super) fn begin_probe(&self) -> (Duration, Result<(), String>) {
        let mut dice = self.probes.lock().unwrap();
        let after = if dice.chance(50) { Duration::ZERO } else { dice.ms(0..5_000) };
        let answer = if dice.chance(60) { Ok(()) } else { Err(String::from("nobody is there")) };
        (after, answer)
    }

    pub(super) fn end_probe(&self, answer: &Result<(), String>) {
        self.trace(|| format!("the server is probed: {answer:?}"));
        let mut ledger = self.ledger();
        ledger.is_unready = answer.is_err();
        ledger.count(if answer.is_ok() { "probe: ready" } else { "probe: not ready" });
    }

    /// What was said of it.
    pub(super) fn hear_ready(&self, is_ready: bool) {
        let mut ledger = self.ledger();
        let expected = !ledger.is_unready && !ledger.was_stopped;
        ledger.hold(Law::States, is_ready == expected, || {
            format!("the worker says that it is ready: {is_ready}, and it is {expected}")
        });
    }

    /// The worker looks at a page.
    pub(super) fn begin_look(&self, page: Page) -> (Duration, Look) {
        let mut pages = self.pages.lock().unwrap();
        let (after, look, feature) = match page {
            Page::Health => pages.health(),
            Page::Slots => pages.slots(),
        };
        drop(pages);
        self.trace(|| format!("{page:?} is looked at: {look:?} after {after:?}"));
        self.count(feature);
        (after, look)
    }

    /// And sees it.
    pub(super) fn end_look(&self, page: Page, look: &Look) {
        let now = self.now();
        let mut ledger = self.ledger();
        match page {
            Page::Slots => ledger.drains.see(now, look),
            // Who waits for a model looks again, or tries.
            Page::Health => {
                for (due, what) in ledger.cases.values_mut().filter_map(|case| case.due.as_mut()) {
                    if *what == NEXT_TRY {
                        *due = (*due).max(now + LONGEST_STEP);
                    }
                }
            }
        }
    }

    // Readers.

    pub(super) fn hear(&self, number: usize, told: &mut Told, event: Arc<Event>) {
        self.trace(|| format!("case {number}: {}", serde_json::to_string(&*event).unwrap()));
        let unit = self.plan.config.run.budget_unit;
        let left = match &*event {
            Event::Finished(_) => self.face().conversation(&format!("req_{number}")),
            _ => None,
        };
        let mut ledger = self.ledger();
        let source_panicked = ledger.source_panicked;
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let heard = told.hear(&event, &case.id, unit);
        case.events.push(Arc::clone(&event));
        let mut held = vec![heard];
        let asks = self.plan.config.approvals == Approvals::Ask;
        let is_lost = source_panicked == Some(self.now());
        match &*event {
            // What follows an event at once may come before the reader has its turn.
            Event::Retry { attempt, delay_ms, .. } => {
                let wait = Duration::from_millis(*delay_ms);
                held.push(oracle::check_wait(case, told.turn, *attempt, wait));
                if case.turns.len() == told.turn as usize && case.last_attempt() < *attempt {
                    held.push(case.in_time(self.now()));
                    let last = case.turns.last().and_then(|turn| turn.exchanges.last());
                    let looks = last.is_some_and(Exchange::says_it_loads);
                    let look = if looks { MAX_LOOK } else { Duration::ZERO };
                    case.due = Some((self.now() + wait + look, NEXT_TRY));
                    case.not_before = self.now() + wait;
                }
            }
            Event::Approval { id, answer: None, .. } if asks => {
                case.asked.insert(id.clone());
            }
            Event::Finished(outcome) => {
                held.push(case.in_time(self.now()));
                case.is_over = true;
                let server = &self.plan.config.server;
                let last = case.turns.last().and_then(|turn| turn.exchanges.last());
                let drains =
                    server.lacks(Feature::FreeOnDisconnect) && last.is_some_and(Exchange::may_be_read);
                let untold = case.executed.keys().find(|id| !told.started.contains(*id)).cloned();
                if !case.running.is_empty() || untold.is_some() {
                    let how = format!("{:?} run after the end, {untold:?} ran unsaid", case.running);
                    held.push(Err(Broken { law: Law::Once, how }));
                }
                held.push(left.map_or(Ok(()), |left| check_left(&left, case, outcome)));
                held.push(oracle::judge(case, told, outcome, &self.plan.config, self.now(), is_lost));
                ledger.count(format!("outcome: {}", oracle::class_of(outcome)));
                if drains {
                    ledger.drains.begin(self.now(), server.slots_page == Some(false));
                    ledger.count("a slot is kept back");
                }
                if ledger.was_stopped {
                    ledger.drains.stop();
                }
                if outcome.text != outcome.raw_text() {
                    ledger.count("a written call left the text");
                }
                if !outcome.signals.is_empty() {
                    ledger.count("a signal");
                }
            }
            _ => {}
        }
        for result in held {
            ledger.note(result);
        }
        drop(ledger);
        self.observe();
    }

    /// A reader has read all that there is.
    pub(super) fn is_idle(&self, number: usize, told: &Told) {
        let id = self.ledger().cases[&number].id.clone();
        if let Some(status) = self.face().status(&id) {
            let agrees = told.agrees_with(&status);
            self.ledger().note(agrees);
        }
    }

    /// What another reader got from `offset` on.
    pub(super) fn compare(&self, number: usize, offset: usize, got: &[Arc<Event>]) {
        let mut ledger = self.ledger();
        let events = &ledger.cases[&number].events;
        let expected: Vec<_> = events.iter().skip(offset).take(got.len()).cloned().collect();
        let is_same = self.fault.is_some() || expected == got;
        ledger.hold(Law::Order, is_same, || format!("case {number}: another reader got {got:?}"));
        ledger.count("another reader");
    }

    /// What one who waited got.
    pub(super) fn compare_end(&self, number: usize, got: Result<Arc<Outcome>, ResultError>) {
        let mut ledger = self.ledger();
        let last = ledger.cases[&number].events.last().cloned();
        let is_same = match (&got, last.as_deref()) {
            (Ok(got), Some(Event::Finished(outcome))) => **got == *outcome,
            _ => false,
        };
        ledger.hold(Law::Order, is_same || self.fault.is_some(), || {
            format!("case {number}: waited for {got:?}")
        });
        ledger.count("a waiter");
    }

    /// The earliest time at which something must have happened.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.ledger().cases.values().filter_map(|case| case.next_due().map(|(due, _)| due + SLACK)).min()
    }

    /// Holds every request against the clock.
    pub(super) fn check_due(&self) {
        let now = self.now();
        let mut ledger = self.ledger();
        let late = ledger.cases.values().map(|case| case.in_time(now)).find(Result::is_err);
        if let Some(late) = late {
            ledger.note(late);
        }
    }

    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.start + at
    }
}

/// The number of a case in its job name.
fn number_in(text: &str) -> usize {
    let digits: String = text.chars().skip("case ".len()).take_while(char::is_ascii_digit).collect();
    digits.parse().expect("the number of a case")
}
