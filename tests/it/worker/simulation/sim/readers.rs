//! Readers of events.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::Feature;
use deftool_chat::request::{Event, Outcome};
use deftool_worker::{Approvals, ResultError};

use super::super::invariants::{Invariant, Violation};
use super::super::ledger::Exchange;
use super::super::oracle;
use super::super::pages::MAX_LOOK;
use super::super::sent::check_left;
use super::super::tracker::EventTracker;
use super::{NEXT_TRY, Simulation};

impl Simulation {
    pub(in super::super) fn record(&self, number: usize, tracker: &mut EventTracker, event: Arc<Event>) {
        self.trace(|| format!("case {number}: {}", serde_json::to_string(&*event).unwrap()));
        let unit = self.plan.config.run.budget_unit;
        let left = match &*event {
            Event::Finished(_) => self.facade().conversation(&format!("req_{number}")),
            _ => None,
        };
        let mut ledger = self.ledger();
        let source_panicked = ledger.source_panicked;
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let recorded = tracker.record(&event, &case.id, unit);
        case.events.push(Arc::clone(&event));
        let mut results = vec![recorded];
        let asks = self.plan.config.approvals == Approvals::Ask;
        let is_lost = source_panicked == Some(self.now());
        match &*event {
            // The step after the event may happen before the reader runs.
            Event::Retry { attempt, delay_ms, .. } => {
                let wait = Duration::from_millis(*delay_ms);
                results.push(oracle::check_wait(case, tracker.turn, *attempt, wait, self.plan.config.server));
                if case.turns.len() == tracker.turn as usize && case.last_attempt() < *attempt {
                    results.push(case.in_time(self.now()));
                    let last = case.turns.last().and_then(|turn| turn.exchanges.last());
                    let is_loading = last.is_some_and(Exchange::reports_loading);
                    let look = if is_loading { MAX_LOOK } else { Duration::ZERO };
                    case.due = Some((self.now() + wait + look, NEXT_TRY));
                    case.not_before = self.now() + wait;
                }
            }
            Event::Approval { id, answer: None, .. } if asks => {
                case.awaiting_approval.insert(id.clone());
            }
            Event::Finished(outcome) => {
                results.push(case.in_time(self.now()));
                case.is_over = true;
                let server = &self.plan.config.server;
                let last = case.turns.last().and_then(|turn| turn.exchanges.last());
                let drains =
                    server.lacks(Feature::FreeOnDisconnect) && last.is_some_and(Exchange::may_process_prompt);
                let unreported = case.executed.keys().find(|id| !tracker.started.contains(*id)).cloned();
                if !case.running.is_empty() || unreported.is_some() {
                    let how =
                        format!("{:?} run after the end, {unreported:?} ran without an event", case.running);
                    results.push(Err(Violation { invariant: Invariant::ExecutedOnce, how }));
                }
                results.push(left.map_or(Ok(()), |left| check_left(&left, case, outcome)));
                results.push(oracle::check_outcome(
                    case,
                    tracker,
                    outcome,
                    &self.plan.config,
                    self.now(),
                    is_lost,
                ));
                ledger.count(format!("outcome: {}", oracle::class_of(outcome)));
                if drains {
                    ledger.drains.begin(self.now(), server.slots_page == Some(false));
                    ledger.count("a slot drains");
                }
                if ledger.was_stopped {
                    ledger.drains.stop();
                }
                if outcome.text != outcome.raw_text() {
                    ledger.count("a call is removed from the text");
                }
                if !outcome.signals.is_empty() {
                    ledger.count("a signal");
                }
            }
            _ => {}
        }
        for result in results {
            ledger.note(result);
        }
        drop(ledger);
        self.observe();
    }

    /// A reader has read all available events.
    pub(in super::super) fn is_idle(&self, number: usize, tracker: &EventTracker) {
        let id = self.ledger().cases[&number].id.clone();
        if let Some(status) = self.facade().status(&id) {
            let agrees = tracker.agrees_with(&status);
            self.ledger().note(agrees);
        }
    }

    /// Compares the events that another reader received, starting at `offset`.
    pub(in super::super) fn compare(&self, number: usize, offset: usize, got: &[Arc<Event>]) {
        let mut ledger = self.ledger();
        let events = &ledger.cases[&number].events;
        let expected: Vec<_> = events.iter().skip(offset).take(got.len()).cloned().collect();
        let is_same = self.fault.is_some() || expected == got;
        ledger.check(Invariant::EventOrder, is_same, || {
            format!("case {number}: another reader received {got:?}")
        });
        ledger.count("another reader");
    }

    /// Compares the result of a wait with the last event.
    pub(in super::super) fn compare_end(&self, number: usize, got: Result<Arc<Outcome>, ResultError>) {
        let mut ledger = self.ledger();
        let last = ledger.cases[&number].events.last().cloned();
        let is_same = match (&got, last.as_deref()) {
            (Ok(got), Some(Event::Finished(outcome))) => got == outcome,
            _ => false,
        };
        ledger.check(Invariant::EventOrder, is_same || self.fault.is_some(), || {
            format!("case {number}: the wait returned {got:?}")
        });
        ledger.count("a waiter");
    }
}
