//! One world while it runs: its clock, its ledger, the present tools, and every step through which it goes.
//!
//! Server, tools and people act through this, each by a file of its own; after each step all requests are looked at.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use deftool::worker::WorkerConfig;
use tokio::time::Instant;

use super::again::Tape;
use super::dice::Dice;
use super::face::{Face, is_over};
use super::faults::Fault;
use super::laws::{Broken, Law};
use super::ledger::{Case, Ledger, SLACK};
use super::pages::Pages;
use super::plan::Plan;
use super::tools::Generation;

mod calls;
mod exchanges;
mod owner;
mod readers;
mod submitters;

const NEXT_TRY: &str = "the next try";

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
        let (in_flight, queued, draining) = (face.in_flight(), face.queued(), face.draining());
        let known = statuses.iter().filter(|(_, status)| status.is_some()).count();
        let run = |status: &Option<deftool::request::RequestStatus>| {
            status.as_ref().is_some_and(|status| !is_over(status.state))
        };
        let running = statuses.iter().filter(|(_, status)| run(status)).count();
        let mut ledger = self.ledger();
        let WorkerConfig { slots, queue, keep_results: keep, .. } = self.plan.config;
        ledger.hold(Law::Slots, in_flight <= slots && in_flight + queued == running, || {
            format!("{in_flight} in flight, {queued} wait, {running} run, {slots} slots")
        });
        let is_full = in_flight + draining >= slots;
        ledger.hold(Law::Slots, queued == 0 || (queued <= queue && is_full), || {
            format!("{queued} of {queue} wait, {in_flight} in flight, {draining} kept back, {slots} slots")
        });
        let now = self.now();
        let (least, most) = ledger.drains.bounds(now);
        // Of those whose end nobody has heard yet, any may have been given up.
        let unheard = ledger.cases.values().filter(|case| !case.is_over).count();
        ledger.hold(Law::Drains, (least..=most + unheard).contains(&draining), || {
            format!("{draining} slots are kept back where it must be {least} to {most} + {unheard}")
        });
        ledger.hold(Law::Kept, known <= in_flight + queued + keep, || {
            format!("{known} are remembered, {in_flight} in flight, {queued} wait, {keep} results to keep")
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
