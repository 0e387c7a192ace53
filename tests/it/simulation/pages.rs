//! The pages beside the API that a llama.cpp server has, and the slots that a worker keeps back because of them.

use std::time::Duration;

use deftool::worker::Look;
use serde_json::{Value, json};

use super::dice::Dice;

/// A page is answered, or given up, in so much time.
pub(super) const MAX_LOOK: Duration = Duration::from_secs(5);
/// No slot is kept back for longer; and as long, where nothing is to be seen.
const MAX_DRAIN: Duration = Duration::from_secs(60);
const BLIND_DRAIN: Duration = Duration::from_secs(5);
/// Between the end of a request and the first look, and between two looks.
const STEPS: Duration = Duration::from_millis(1_200);

/// How the server answers such questions.
pub(super) struct Pages {
    dice: Dice,
    kind: Kind,
    busy: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Idle,
    /// For so many looks, now and then.
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

    /// `/slots`: when it is answered and how, and what to count it as.
    pub(super) fn slots(&mut self) -> (Duration, Look, &'static str) {
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
            Kind::Idle => (after, Look::Seen(200, slots(0)), "slots: idle"),
            Kind::Busy if self.busy > 0 || self.dice.chance(40) => {
                self.busy = if self.busy == 0 { self.dice.below(1..20) } else { self.busy - 1 };
                let busy = if self.dice.chance(70) { count } else { self.dice.below(0..count) };
                (after, Look::Seen(200, slots(busy)), "slots: busy for a while")
            }
            Kind::Busy => (after, Look::Seen(200, slots(0)), "slots: idle"),
            Kind::AlwaysBusy => (after, Look::Seen(200, slots(count)), "slots: always busy"),
            Kind::Missing => {
                let missing =
                    [Look::Missing, Look::Seen(404, Value::Null), Look::Seen(501, json!({"error": {}}))];
                (after, self.dice.pick(&missing).clone(), "slots: missing")
            }
            Kind::Silent => {
                let after = if self.dice.chance(50) { MAX_LOOK } else { after };
                (after, Look::Silent, "slots: silent")
            }
            Kind::Garbage => {
                let garbage = [
                    Look::Seen(200, Value::Null),
                    Look::Seen(200, json!("slots")),
                    Look::Seen(200, json!({"slots": []})),
                    Look::Seen(200, json!([])),
                    Look::Seen(200, json!([{"is_processing": true}, 7, null])),
                    Look::Seen(200, json!([{"is_processing": "no"}])),
                    Look::Seen(500, json!([{"is_processing": false}])),
                ];
                (after, self.dice.pick(&garbage).clone(), "slots: garbage")
            }
            Kind::Anything => unreachable!("it became another"),
        }
    }

    /// `/health`, likewise; in the end it is well.
    pub(super) fn health(&mut self) -> (Duration, Look, &'static str) {
        let after = if self.dice.chance(60) { Duration::ZERO } else { self.dice.ms(0..3_000) };
        match self.dice.below(0..6) {
            0 | 1 => {
                (after, Look::Seen(503, json!({"error": {"message": "Loading model"}})), "health: loading")
            }
            2 => (MAX_LOOK, Look::Silent, "health: silent"),
            3 => (after, Look::Missing, "health: missing"),
            4 => (after, Look::Seen(500, json!("?")), "health: garbage"),
            _ => (after, Look::Seen(200, json!({"status": "ok"})), "health: well"),
        }
    }
}

/// A slot that must be kept back: a request was given up while the server may have been reading its prompt.
#[derive(Debug)]
struct Drain {
    began: Duration,
    /// Nothing is to be seen of the slots.
    blind: bool,
    /// A slot was seen that may be its own, idle.
    idle: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Drains {
    all: Vec<Drain>,
    /// When an idle slot was last seen, and when nothing was: the worker may have looked before anybody heard the end.
    idle: Option<Duration>,
    blind: Option<Duration>,
}

impl Drains {
    pub(super) fn begin(&mut self, began: Duration, blind: bool) {
        let blind = blind || self.blind == Some(began);
        self.all.push(Drain { began, blind, idle: self.idle == Some(began) });
    }

    /// The worker gets to see this; whose look it was, nobody knows.
    pub(super) fn see(&mut self, now: Duration, look: &Look) {
        let (idle, blind) = match look {
            Look::Seen(200, Value::Array(slots)) => {
                (slots.iter().any(|slot| slot["is_processing"] != true), false)
            }
            Look::Silent => (false, false),
            Look::Seen(..) | Look::Missing => (false, true),
        };
        self.idle = idle.then_some(now).or(self.idle);
        self.blind = blind.then_some(now).or(self.blind);
        for drain in &mut self.all {
            drain.idle |= idle;
            drain.blind |= blind;
        }
    }

    /// A worker that is stopped waits for nothing.
    pub(super) fn stop(&mut self) {
        for drain in &mut self.all {
            drain.idle = true;
        }
    }

    /// How many are kept back at least and at most.
    pub(super) fn bounds(&mut self, now: Duration) -> (usize, usize) {
        self.all.retain(|drain| now <= drain.began + MAX_DRAIN + MAX_LOOK + STEPS);
        let least = self.all.iter().filter(|drain| {
            !drain.idle && now < drain.began + if drain.blind { BLIND_DRAIN } else { MAX_DRAIN }
        });
        (least.count(), self.all.len())
    }
}
