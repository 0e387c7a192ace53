//! Those who read events.

use std::sync::Arc;
use std::time::Duration;

use deftool::chat::Feature;
use deftool::request::{Event, Outcome};
use deftool::worker::{Approvals, ResultError};

use super::super::laws::{Broken, Law};
use super::super::ledger::Exchange;
use super::super::oracle;
use super::super::pages::MAX_LOOK;
use super::super::sent::check_left;
use super::super::told::Told;
use super::{NEXT_TRY, World};

impl World {
    pub(in super::super) fn hear(&self, number: usize, told: &mut Told, event: Arc<Event>) {
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
    pub(in super::super) fn is_idle(&self, number: usize, told: &Told) {
        let id = self.ledger().cases[&number].id.clone();
        if let Some(status) = self.face().status(&id) {
            let agrees = told.agrees_with(&status);
            self.ledger().note(agrees);
        }
    }

    /// What another reader got from `offset` on.
    pub(in super::super) fn compare(&self, number: usize, offset: usize, got: &[Arc<Event>]) {
        let mut ledger = self.ledger();
        let events = &ledger.cases[&number].events;
        let expected: Vec<_> = events.iter().skip(offset).take(got.len()).cloned().collect();
        let is_same = self.fault.is_some() || expected == got;
        ledger.hold(Law::Order, is_same, || format!("case {number}: another reader got {got:?}"));
        ledger.count("another reader");
    }

    /// What one who waited got.
    pub(in super::super) fn compare_end(&self, number: usize, got: Result<Arc<Outcome>, ResultError>) {
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
}
