//! Requests to the server and its answers.

use std::sync::Arc;
use std::time::Duration;

use deftool_worker::{Outgoing, Page, PageResponse};

use super::super::dice::Dice;
use super::super::faults::Fault;
use super::super::invariants::{Invariant, Violation};
use super::super::ledger::{Exchange, Turn, head_limit};
use super::super::refusals;
use super::super::script::{ExchangeContext, Script};
use super::super::sent::{check_body, check_retry, check_tools};
use super::super::wire::lose_answer;
use super::{NEXT_TRY, Simulation};

/// The longest interval between health checks of a loading server, including one check.
const LONGEST_STEP: Duration = Duration::from_secs(10);

impl Simulation {
    /// The server receives a request.
    pub(in super::super) fn begin_exchange(&self, outgoing: Outgoing) -> (usize, Script) {
        let Outgoing { request_id, turn, attempt, api, body, .. } = outgoing;
        let mut body = body.to_value();
        let text = body.to_string();
        let number: usize = request_id.trim_start_matches("req_").parse().expect("the number of a case");
        let options = &self.plan.cases[number].options;
        let streams = body["stream"] == true;
        if self.fault == Some(Fault::LoseToolResult) {
            lose_answer(&mut body);
        }
        let mut current = Arc::clone(&self.tools.lock().unwrap().0);
        if let Some(names) = &options.tools {
            current = Arc::new(current.only(names));
        }
        let config = &self.plan.config;
        let context = ExchangeContext {
            generation: &current,
            body: &text,
            streams,
            attempt,
            stall: config.timers.stall,
            calm: self.plan.calm,
            api: self.plan.config.api,
        };
        let numbers = [number as u64, u64::from(turn), u64::from(attempt)];
        let script = Script::write(&mut Dice::of(self.plan.seed, "script", &numbers), &context);
        self.trace(|| format!("case {number} sends ({turn}, {attempt}): {text}"));
        self.trace(|| format!("case {number} is answered: {:?}", script.features));
        let limit = head_limit(&config.timers);
        let due = self.now() + if streams { limit } else { limit.max(Duration::from_secs(10)) };
        let id = self.ledger().cases[&number].id.clone();
        let budget_left = self.facade().status(&id).map(|status| status.budget_left);
        let mut ledger = self.ledger();
        for feature in &script.features {
            ledger.count(feature);
        }
        let mut last_turns = 0;
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let mut results = vec![self.touch(case, Some((due, "a head")))];
        if self.now() < case.not_before {
            let how = format!("{}: the next attempt is before {:?}", case.id, case.not_before);
            results.push(Err(Violation { invariant: Invariant::Retry, how }));
        }
        let last = case.turns.last().and_then(|turn| turn.exchanges.last()).filter(|_| attempt > 1);
        let body_fallback = last.and_then(|last| last.next_body_fallback(&case.body_fallbacks));
        case.body_fallbacks.extend(body_fallback.map(refusals::bit));
        if api != self.plan.config.api {
            results.push(Err(Violation {
                invariant: Invariant::Conversation,
                how: format!("{}: by {api:?}", case.id),
            }));
        }
        results.push(check_body(&body, &config.run, case, options));
        if turn as usize > case.turns.len() {
            let is_last = config.run.final_turn && budget_left == Some(0);
            last_turns += usize::from(is_last);
            results.push(check_tools(&body, &current, is_last, config, &case.body_fallbacks));
            case.turns.push(Turn {
                generation: current,
                exchanges: Vec::new(),
                call_ends: Vec::new(),
                is_paid: false,
            });
        }
        case.open += 1;
        let exchanges = &mut case.turns[turn as usize - 1].exchanges;
        results.push(check_retry(exchanges, attempt, &body, streams, body_fallback));
        let retries = exchanges.last().map_or(0, |last| last.retries + u32::from(body_fallback.is_none()));
        exchanges
            .push(Exchange { retries, ..Exchange::new(attempt, body, streams, script.clone(), self.now()) });
        if let Some(body_fallback) = body_fallback {
            ledger.count(format!("sent again {}", body_fallback.describe()));
        }
        for result in results {
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
        let exchange = case.turns.last_mut().and_then(|turn| turn.exchanges.last_mut()).expect("an exchange");
        if let Some(due) = change(exchange) {
            case.due = Some(due);
        }
        ledger.note(in_time);
        drop(ledger);
        self.observe();
    }

    /// The worker dropped an exchange, at its end or earlier.
    pub(in super::super) fn exchange_ends(&self, number: usize) {
        if let Some(case) = self.ledger().cases.get_mut(&number) {
            case.open -= 1;
        }
    }

    /// The server sends the head.
    pub(in super::super) fn on_head(&self, number: usize) {
        let (now, timers) = (self.now(), &self.plan.config.timers);
        self.with_exchange(number, |exchange| Some(exchange.head_came(now, timers)));
        self.ledger().learn(number);
        self.trace(|| format!("case {number} gets a head"));
    }

    /// The connection fails before a head.
    pub(in super::super) fn on_connection_failure(&self, number: usize) {
        self.with_exchange(number, |exchange| {
            exchange.is_answered = true;
            None
        });
    }

    /// The server sends bytes that complete `frames` frames.
    pub(in super::super) fn on_bytes(&self, number: usize, bytes: usize, frames: usize) {
        let (now, timers) = (self.now(), &self.plan.config.timers);
        self.with_exchange(number, |exchange| exchange.bytes_came(frames, now, timers));
        self.trace(|| format!("case {number} gets {bytes} bytes"));
    }

    pub(in super::super) fn on_body_end(&self, number: usize) {
        let now = self.now();
        self.with_exchange(number, |exchange| {
            exchange.is_over = true;
            Some((now, "the step after a reply"))
        });
        self.trace(|| format!("case {number}: the body ends"));
    }

    /// The worker requests a page.
    pub(in super::super) fn begin_page_request(&self, page: Page) -> (Duration, PageResponse) {
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

    /// The worker receives a page.
    pub(in super::super) fn end_page_request(&self, page: Page, look: &PageResponse) {
        let now = self.now();
        let mut ledger = self.ledger();
        match page {
            Page::Slots => ledger.drains.update(now, look),
            // A request that waits for the model repeats the health check or its attempt.
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
