//! What the server is asked and how its answers come.

use std::sync::Arc;
use std::time::Duration;

use deftool::worker::{Look, Outgoing, Page};

use super::super::dice::Dice;
use super::super::faults::Fault;
use super::super::laws::{Broken, Law};
use super::super::ledger::{Exchange, Turn};
use super::super::script::{Asked, Script};
use super::super::sent::{check_body, check_retry, check_tools};
use super::super::swaps::{self, next_form};
use super::super::wire::lose_answer;
use super::{NEXT_TRY, World};

/// Between two looks at a server that loads its model, one of them included.
const LONGEST_STEP: Duration = Duration::from_secs(10);

impl World {
    /// A request reaches the server.
    pub(in super::super) fn begin_exchange(&self, outgoing: Outgoing) -> (usize, Script) {
        let Outgoing { request_id, turn, attempt, api, mut body } = outgoing;
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
            api: self.plan.config.api,
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
        if api != self.plan.config.api {
            held.push(Err(Broken { law: Law::History, how: format!("{}: by {api:?}", case.id) }));
        }
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
        case.open += 1;
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

    /// The worker let an exchange go, by its end or before.
    pub(in super::super) fn exchange_ends(&self, number: usize) {
        if let Some(case) = self.ledger().cases.get_mut(&number) {
            case.open -= 1;
        }
    }

    /// The head is on its way to the worker.
    pub(in super::super) fn head_comes(&self, number: usize) {
        let (now, timers) = (self.now(), &self.plan.config.timers);
        self.with_exchange(number, |exchange| Some(exchange.head_came(now, timers)));
        self.ledger().learn(number);
        self.trace(|| format!("case {number} gets a head"));
    }

    /// No head will come.
    pub(in super::super) fn connection_fails(&self, number: usize) {
        self.with_exchange(number, |exchange| {
            exchange.is_answered = true;
            None
        });
    }

    /// Bytes are on their way, and with them the ends of so many frames.
    pub(in super::super) fn bytes_come(&self, number: usize, bytes: usize, frames: usize) {
        let (now, timers) = (self.now(), &self.plan.config.timers);
        self.with_exchange(number, |exchange| exchange.bytes_came(frames, now, timers));
        self.trace(|| format!("case {number} gets {bytes} bytes"));
    }

    pub(in super::super) fn body_ends(&self, number: usize) {
        let now = self.now();
        self.with_exchange(number, |exchange| {
            exchange.is_over = true;
            Some((now, "what follows a reply"))
        });
        self.trace(|| format!("case {number}: the body ends"));
    }

    /// The worker looks at a page.
    pub(in super::super) fn begin_look(&self, page: Page) -> (Duration, Look) {
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
    pub(in super::super) fn end_look(&self, page: Page, look: &Look) {
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
}
