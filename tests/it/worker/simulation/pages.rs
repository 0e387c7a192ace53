//! The pages of a llama.cpp server next to the API, and the draining slots that depend on them.

use std::time::Duration;

use deftool_worker::PageResponse;
use serde_json::{Value, json};

use super::dice::Dice;

/// The time limit for a page request.
pub(super) const MAX_LOOK: Duration = Duration::from_secs(5);
/// The maximum drain time, and the drain time without slot information.
const MAX_DRAIN: Duration = Duration::from_secs(60);
const BLIND_DRAIN: Duration = Duration::from_secs(5);
/// The longest interval between page requests, and from the end of a request to the first.
const STEPS: Duration = Duration::from_millis(1_200);

/// The behavior of the server's pages.
pub(super) struct Pages {
    dice: Dice,
    kind: Kind,
    busy: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Idle,
    /// Sometimes reports busy slots for several page requests.
    Busy,
    AlwaysBusy,
    Missing,
    Silent,
    Garbage,
    Anything,
}

impl Pages {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::of(seed, "pages", &[]);
        let kind = dice.weighted(&[
            (2, Kind::Idle),
            (4, Kind::Busy),
            (1, Kind::AlwaysBusy),
            (2, Kind::Missing),
            (1, Kind::Silent),
            (1, Kind::Garbage),
            (3, Kind::Anything),
        ]);
        Self { dice, kind, busy: 0 }
    }

    /// Returns the delay of a `/slots` answer, the answer, and its coverage name.
    pub(super) fn slots(&mut self) -> (Duration, PageResponse, &'static str) {
        let kind = match self.kind {
            Kind::Anything => {
                *self.dice.pick(&[Kind::Idle, Kind::Busy, Kind::Missing, Kind::Silent, Kind::Garbage])
            }
            kind => kind,
        };
        let after = if self.dice.chance(60) { Duration::ZERO } else { self.dice.ms(0..3_000) };
        let count = self.dice.below(1..7);
        let slots = |most_busy: usize| -> Value {
            let busy = |nth: usize| nth < most_busy;
            (0..count).map(|nth| json!({"id": nth, "n_ctx": 512, "is_processing": busy(nth)})).collect()
        };
        match kind {
            Kind::Idle => (after, PageResponse::Received(200, slots(0)), "slots: idle"),
            Kind::Busy if self.busy > 0 || self.dice.chance(40) => {
                self.busy = if self.busy == 0 { self.dice.below(1..20) } else { self.busy - 1 };
                let busy = if self.dice.chance(70) { count } else { self.dice.below(0..count) };
                (after, PageResponse::Received(200, slots(busy)), "slots: busy for a while")
            }
            Kind::Busy => (after, PageResponse::Received(200, slots(0)), "slots: idle"),
            Kind::AlwaysBusy => (after, PageResponse::Received(200, slots(count)), "slots: always busy"),
            Kind::Missing => {
                let missing = [
                    PageResponse::Unsupported,
                    PageResponse::Received(404, Value::Null),
                    PageResponse::Received(501, json!({"error": {}})),
                ];
                (after, self.dice.pick(&missing).clone(), "slots: missing")
            }
            Kind::Silent => {
                let after = if self.dice.chance(50) { MAX_LOOK } else { after };
                (after, PageResponse::NoAnswer, "slots: silent")
            }
            Kind::Garbage => {
                let garbage = [
                    PageResponse::Received(200, Value::Null),
                    PageResponse::Received(200, json!("slots")),
                    PageResponse::Received(200, json!({"slots": []})),
                    PageResponse::Received(200, json!([])),
                    PageResponse::Received(200, json!([{"is_processing": true}, 7, null])),
                    PageResponse::Received(200, json!([{"is_processing": "no"}])),
                    PageResponse::Received(500, json!([{"is_processing": false}])),
                ];
                (after, self.dice.pick(&garbage).clone(), "slots: garbage")
            }
            Kind::Anything => unreachable!("it was replaced above"),
        }
    }

    /// Returns the same for `/health`. The server becomes healthy eventually.
    pub(super) fn health(&mut self) -> (Duration, PageResponse, &'static str) {
        let after = if self.dice.chance(60) { Duration::ZERO } else { self.dice.ms(0..3_000) };
        match self.dice.below(0..6) {
            0 | 1 => (
                after,
                PageResponse::Received(503, json!({"error": {"message": "Loading model"}})),
                "health: loading",
            ),
            2 => (MAX_LOOK, PageResponse::NoAnswer, "health: silent"),
            3 => (after, PageResponse::Unsupported, "health: missing"),
            4 => (after, PageResponse::Received(500, json!("?")), "health: garbage"),
            _ => (after, PageResponse::Received(200, json!({"status": "ok"})), "health: ok"),
        }
    }
}

/// A slot that must drain: its request was abandoned while the server may have been processing the prompt.
#[derive(Debug)]
struct Drain {
    began: Duration,
    /// Whether there is no slot information.
    blind: bool,
    /// Whether an idle slot was reported, which may be this slot.
    idle: bool,
}

/// All draining slots.
#[derive(Debug, Default)]
pub(super) struct Drains {
    all: Vec<Drain>,
    /// The last times with an idle slot and without slot information. The worker may request the page before the reader
    /// receives the end.
    idle: Option<Duration>,
    blind: Option<Duration>,
}

impl Drains {
    pub(super) fn begin(&mut self, began: Duration, blind: bool) {
        let blind = blind || self.blind == Some(began);
        self.all.push(Drain { began, blind, idle: self.idle == Some(began) });
    }

    /// Records a page answer. It is unknown which drain requested it.
    pub(super) fn update(&mut self, now: Duration, look: &PageResponse) {
        let (idle, blind) = match look {
            PageResponse::Received(200, Value::Array(slots)) => {
                (slots.iter().any(|slot| slot["is_processing"] != true), false)
            }
            PageResponse::NoAnswer => (false, false),
            PageResponse::Received(..) | PageResponse::Unsupported => (false, true),
        };
        self.idle = idle.then_some(now).or(self.idle);
        self.blind = blind.then_some(now).or(self.blind);
        for drain in &mut self.all {
            drain.idle |= idle;
            drain.blind |= blind;
        }
    }

    /// A stopped worker ends all drains.
    pub(super) fn stop(&mut self) {
        for drain in &mut self.all {
            drain.idle = true;
        }
    }

    /// Returns the minimum and maximum number of draining slots.
    pub(super) fn bounds(&mut self, now: Duration) -> (usize, usize) {
        self.all.retain(|drain| now <= drain.began + MAX_DRAIN + MAX_LOOK + STEPS);
        let least = self.all.iter().filter(|drain| {
            !drain.idle && now < drain.began + if drain.blind { BLIND_DRAIN } else { MAX_DRAIN }
        });
        (least.count(), self.all.len())
    }
}
