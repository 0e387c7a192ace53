//! The state of a simulated run: clock, ledger, current tools, and every step.
//!
//! Server, tools and users act through it. After each step, all requests are checked.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use deftool_worker::WorkerConfig;
use tokio::time::Instant;

use super::dice::Dice;
use super::facade::{WorkerFacade, is_over};
use super::faults::Fault;
use super::invariants::{Invariant, Violation};
use super::ledger::{Case, Ledger, SLACK};
use super::pages::Pages;
use super::plan::Plan;
use super::replay::RunRecording;
use super::tools::Generation;

mod calls;
mod exchanges;
mod owner;
mod readers;
mod submitters;

const NEXT_TRY: &str = "the next attempt";

pub(super) struct Simulation {
    pub(super) plan: Plan,
    pub(super) fault: Option<Fault>,
    start: Instant,
    ledger: Mutex<Ledger>,
    facade: Mutex<Option<WorkerFacade>>,
    tools: Mutex<(Arc<Generation>, Arc<Generation>)>,
    source: Mutex<Dice>,
    pages: Mutex<Pages>,
    probes: Mutex<Dice>,
    pub(super) run_recording: Mutex<Option<RunRecording>>,
}

impl Simulation {
    pub(super) fn new(plan: Plan, fault: Option<Fault>, traces: bool) -> Arc<Self> {
        let first = Arc::new(Generation::new(plan.seed, 0));
        let source = Dice::of(plan.seed, "source", &[]);
        let pages = Pages::new(plan.seed);
        let run_recording = RunRecording::of(&plan, fault);
        let probes = Dice::of(plan.seed, "probes", &[]);
        let ledger = Ledger { trace: traces.then(Vec::new), ..Ledger::default() };
        Arc::new(Self {
            plan,
            fault,
            start: Instant::now(),
            ledger: Mutex::new(ledger),
            facade: Mutex::new(None),
            tools: Mutex::new((Arc::clone(&first), first)),
            source: Mutex::new(source),
            pages: Mutex::new(pages),
            probes: Mutex::new(probes),
            run_recording: Mutex::new(run_recording),
        })
    }

    pub(super) fn set_facade(&self, facade: Option<WorkerFacade>) {
        *self.facade.lock().unwrap() = facade;
    }

    pub(super) fn facade(&self) -> WorkerFacade {
        self.facade.lock().unwrap().clone().expect("the worker runs")
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

    /// Checks the status of every request and the slots.
    pub(super) fn observe(&self) {
        let Some(facade) = self.facade.lock().unwrap().clone() else { return };
        let ids: Vec<(usize, String)> =
            self.ledger().cases.iter().map(|(number, case)| (*number, case.id.clone())).collect();
        let statuses: Vec<_> = ids.into_iter().map(|(number, id)| (number, facade.status(&id))).collect();
        let (in_flight, queued, draining) = (facade.in_flight(), facade.queued(), facade.draining());
        let known = statuses.iter().filter(|(_, status)| status.is_some()).count();
        let run = |status: &Option<deftool_chat::request::RequestStatus>| {
            status.as_ref().is_some_and(|status| !is_over(status.state))
        };
        let running = statuses.iter().filter(|(_, status)| run(status)).count();
        let mut ledger = self.ledger();
        let WorkerConfig { slots, queue, keep_results: keep, .. } = self.plan.config;
        ledger.check(Invariant::Slots, in_flight <= slots && in_flight + queued == running, || {
            format!("{in_flight} in flight, {queued} queued, {running} running, {slots} slots")
        });
        let is_full = in_flight + draining >= slots;
        ledger.check(Invariant::Slots, queued == 0 || (queued <= queue && is_full), || {
            format!("{queued} of {queue} queued, {in_flight} in flight, {draining} draining, {slots} slots")
        });
        let now = self.now();
        let (least, most) = ledger.drains.bounds(now);
        // A request may have been abandoned before a reader receives its end.
        let unreported = ledger.cases.values().filter(|case| !case.is_over).count();
        ledger.check(Invariant::Drains, (least..=most + unreported).contains(&draining), || {
            format!("{draining} draining slots, expected {least} to {most} + {unreported}")
        });
        ledger.check(Invariant::ResultLimit, known <= in_flight + queued + keep, || {
            format!("{known} known requests, {in_flight} in flight, {queued} queued, {keep} results to keep")
        });
        for (number, status) in statuses {
            let Some(case) = ledger.cases.get_mut(&number) else { continue };
            let is_gone = status.is_none() && !case.taken && !case.forgotten;
            case.forgotten |= is_gone;
            let seen = case.update(status);
            ledger.note(seen);
            if is_gone {
                ledger.count("a result is discarded");
            }
        }
    }

    /// Checks that a step of a request is in time, and sets the deadline of the next.
    fn touch(&self, case: &mut Case, due: Option<(Duration, &'static str)>) -> Result<(), Violation> {
        let result = case.in_time(self.now());
        case.due = due;
        result
    }

    /// Returns the earliest deadline.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.ledger().cases.values().filter_map(|case| case.next_due().map(|(due, _)| due + SLACK)).min()
    }

    /// Checks the deadline of every request.
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
