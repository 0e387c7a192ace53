//! The state of each request as the simulation observes it, and the deadline of its next step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::BodyFallback;
use deftool_chat::request::{Event, RequestStatus};
use deftool_lang::spec::Timers;
use deftool_lang::tool::ToolErrorKind;
use serde_json::Value;

use super::invariants::{Invariant, Violation};
use super::pages::Drains;
use super::refusals::BodyFallbacks;
use super::script::{Frame, Head, Script};
use super::tools::Generation;

/// Timers fire on the next whole millisecond.
pub(super) const SLACK: Duration = Duration::from_millis(3);
/// The time after the last event of a body, or after a cancel, in which a request must end.
pub(super) const END_GRACE: Duration = Duration::from_millis(50);

/// The observed state of a run.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) cases: BTreeMap<usize, Case>,
    pub(super) features: BTreeMap<String, usize>,
    pub(super) trace: Option<Vec<String>>,
    /// The time at which the tool source last panicked.
    pub(super) source_panicked: Option<Duration>,
    /// The slots that must drain.
    pub(super) drains: Drains,
    pub(super) was_stopped: bool,
    /// Whether the last probe reported that the server is not ready.
    pub(super) is_unready: bool,
    /// The body fallbacks that the server accepted, by model. Later requests to the model start with them.
    pub(super) learned: BTreeMap<String, BodyFallbacks>,
    /// Whether a submit is in progress. The tool source must not panic then.
    pub(super) in_submit: bool,
    /// The first violation.
    pub(super) violation: Option<Violation>,
}

impl Ledger {
    pub(super) fn note(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    pub(super) fn check(&mut self, invariant: Invariant, holds: bool, how: impl FnOnce() -> String) {
        if !holds {
            self.note(Err(Violation { invariant, how: how() }));
        }
    }

    /// The server accepted a request, and with it its body fallbacks.
    pub(super) fn learn(&mut self, number: usize) {
        let Some(case) = self.cases.get(&number) else { return };
        let last = case.turns.last().and_then(|turn| turn.exchanges.last());
        if let Some(exchange) = last.filter(|exchange| exchange.streams && exchange.script.head == Head::Ok) {
            let model = exchange.body["model"].as_str().unwrap_or_default().to_owned();
            self.learned.entry(model).or_default().extend(case.body_fallbacks.iter().copied());
        }
    }

    pub(super) fn count(&mut self, feature: impl Into<String>) {
        *self.features.entry(feature.into()).or_default() += 1;
    }
}

/// An accepted request.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Case {
    pub(super) id: String,
    pub(super) turns: Vec<Turn>,
    /// The exchanges that the worker has not dropped: it waits for a head, or reads a stream.
    pub(super) open: usize,
    /// The body fallbacks in use.
    pub(super) body_fallbacks: BodyFallbacks,
    /// Like [`Case::executed`], for the case that this case continues.
    pub(super) past: BTreeMap<String, Option<Value>>,
    /// Every executed call and its result, if it has one.
    pub(super) executed: BTreeMap<String, Option<Value>>,
    pub(super) allowed: BTreeSet<String>,
    /// The running calls and their deadlines.
    pub(super) running: BTreeMap<String, Duration>,
    /// The calls that wait for an approval.
    pub(super) awaiting_approval: BTreeSet<String>,
    /// The deadline of the next step, while no call runs or waits for an approval.
    pub(super) due: Option<(Duration, &'static str)>,
    /// The earliest time of the next attempt.
    pub(super) not_before: Duration,
    /// The deadline of the request.
    pub(super) over_by: Option<(Duration, &'static str)>,
    pub(super) canceled: bool,
    pub(super) stopped: bool,
    /// Whether the request had an open exchange when the worker was restarted.
    pub(super) restarted: bool,
    pub(super) status: Option<RequestStatus>,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) is_over: bool,
    pub(super) taken: bool,
    pub(super) forgotten: bool,
}

/// A model turn.
pub(super) struct Turn {
    pub(super) generation: Arc<Generation>,
    pub(super) exchanges: Vec<Exchange>,
    /// The results of the turn's calls, in the order of their ends. `None` is a success.
    pub(super) call_ends: Vec<Option<ToolErrorKind>>,
    /// Whether any call was executed.
    pub(super) is_paid: bool,
}

/// A request to the server and the state of its answer.
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Exchange {
    pub(super) attempt: u32,
    /// The number of retries with the same body.
    pub(super) retries: u32,
    pub(super) body: Value,
    pub(super) streams: bool,
    pub(super) script: Script,
    /// The number of completely delivered frames.
    pub(super) frames: usize,
    /// The size of the text in these frames, in bytes.
    pub(super) text: usize,
    pub(super) any_byte: bool,
    /// Whether the server no longer processes the request: it sent the final head, or will not send one.
    pub(super) is_answered: bool,
    /// Whether the body has ended.
    pub(super) is_over: bool,
    /// The number of received token counts: one, even if they are repeated.
    pub(super) usages: u64,
    pub(super) clock: StreamClock,
    /// When it was sent.
    pub(super) sent: Duration,
}

/// Returns the limit for the head of a response.
pub(super) fn head_limit(timers: &Timers) -> Duration {
    timers.headers.into_iter().chain(timers.first_token).min().unwrap_or_default()
}

/// Returns the limit for events after the first token.
pub(super) fn event_limit(timers: &Timers) -> Duration {
    timers.stall.max(Duration::from_secs(1800))
}

/// The timers of a stream, as the invariants expect them.
#[derive(Default)]
pub(super) struct StreamClock {
    next: Duration,
    event: Option<Duration>,
    finish: Option<Duration>,
}

impl Exchange {
    pub(super) fn new(attempt: u32, body: Value, streams: bool, script: Script, sent: Duration) -> Self {
        let clock = StreamClock::default();
        let (is_answered, is_over) = (false, false);
        Self {
            attempt,
            retries: 0,
            body,
            streams,
            script,
            frames: 0,
            text: 0,
            any_byte: false,
            is_answered,
            is_over,
            usages: 0,
            clock,
            sent,
        }
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.frames == self.script.frames.len()
    }

    /// Returns the body fallback that must follow. `body_fallbacks` are those already in use.
    pub(super) fn next_body_fallback(&self, body_fallbacks: &BodyFallbacks) -> Option<BodyFallback> {
        let refused = self.script.refused.filter(|_| self.is_delivered() && self.streams)?;
        refused.answer(&self.body, body_fallbacks)
    }

    /// Whether the answer reports that the model is loading.
    pub(super) fn reports_loading(&self) -> bool {
        self.is_delivered() && self.script.has("head: loading")
    }

    /// Whether the whole content of the reply was received. Token counts may follow.
    pub(super) fn is_content_complete(&self) -> bool {
        let came = self.script.frames.iter().take(self.frames);
        self.is_delivered() || came.into_iter().any(|frame| frame.is_finish || frame.is_last)
    }

    /// Whether the reply has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.is_over || self.script.frames.iter().take(self.frames).any(|frame| frame.is_last)
    }

    /// Whether the server may be processing the prompt, which it continues without a client.
    pub(super) fn may_process_prompt(&self) -> bool {
        let has_begun = |frame: &Frame| frame.is_token || frame.is_finish || frame.is_last;
        let has_begun = self.script.frames.iter().take(self.frames).any(has_begun);
        !self.is_answered && !self.is_over && !has_begun
    }

    /// Records the head. Returns the deadline of the next step.
    pub(super) fn head_came(&mut self, now: Duration, timers: &Timers) -> (Duration, &'static str) {
        self.is_answered = self.script.head != Head::Ok || !self.streams;
        match self.script.head {
            Head::Ok if self.streams => {
                self.clock.next = self.sent + timers.first_token.unwrap_or_default();
                (self.clock.next, "the first token")
            }
            Head::Status { .. } => (now + timers.stall.min(Duration::from_secs(10)), "the body of an error"),
            Head::Ok | Head::Refused | Head::Unreachable | Head::Broken | Head::Panics => (now, "an answer"),
        }
    }

    /// Records bytes that complete `frames` frames. Returns the deadline of the next step.
    pub(super) fn bytes_came(
        &mut self,
        frames: usize,
        now: Duration,
        timers: &Timers,
    ) -> Option<(Duration, &'static str)> {
        self.any_byte = true;
        let whole: Vec<Frame> = self.script.frames.iter().skip(self.frames).take(frames).cloned().collect();
        self.frames += frames;
        self.text += whole.iter().map(|frame| frame.text).sum::<usize>();
        self.usages = self.usages.max(whole.iter().any(|frame| frame.is_usage).into());
        if self.script.head != Head::Ok {
            return None;
        }
        let clock = &mut self.clock;
        for frame in whole {
            if frame.is_token || (frame.is_progress && clock.event.is_some()) {
                clock.event = Some(now + event_limit(timers));
            } else if frame.is_progress {
                clock.next = now + timers.first_token.unwrap_or_default();
            }
            if frame.is_finish {
                clock.finish.get_or_insert(now + Duration::from_secs(5));
            }
            if frame.is_last {
                return Some((now + END_GRACE, "the end after the last event"));
            }
        }
        if clock.event.is_some() {
            clock.next = now + timers.stall;
        }
        let others = [clock.event, clock.finish].into_iter().flatten();
        Some((others.fold(clock.next, Duration::min), "the next byte or token"))
    }
}

impl Case {
    /// Returns the last attempt of the current turn.
    pub(super) fn last_attempt(&self) -> u32 {
        self.turns.last().and_then(|turn| turn.exchanges.last()).map_or(0, |exchange| exchange.attempt)
    }

    /// Returns the deadline of the next step.
    pub(super) fn next_due(&self) -> Option<(Duration, &'static str)> {
        if self.is_over {
            return None;
        }
        let soft = if !self.awaiting_approval.is_empty() {
            None
        } else if let Some(last) = self.running.values().max() {
            Some((*last, "the end of its tools"))
        } else {
            self.due
        };
        [soft, self.over_by].into_iter().flatten().min_by_key(|(due, _)| *due)
    }

    /// Checks that a step is not later than its deadline.
    pub(super) fn in_time(&self, now: Duration) -> Result<(), Violation> {
        match self.next_due() {
            Some((due, what)) if now > due + SLACK => {
                let how = format!("{}: {what} was due at {due:?}, and it is {now:?}", self.id);
                Err(Violation { invariant: Invariant::Deadline, how })
            }
            _ => Ok(()),
        }
    }

    /// Sets a deadline for the request, unless it has an earlier one.
    pub(super) fn must_end(&mut self, by: Duration, why: &'static str) {
        if self.over_by.is_none_or(|(before, _)| by < before) {
            self.over_by = Some((by, why));
        }
    }

    /// Compares a status with the last one and stores it.
    pub(super) fn update(&mut self, status: Option<RequestStatus>) -> Result<(), Violation> {
        let violation = |invariant, how: String| Err(Violation { invariant, how });
        let before = self.status.take();
        let was_over = before.as_ref().is_some_and(|status| super::facade::is_over(status.state));
        let result = match (&before, &status) {
            (Some(before), Some(now)) if was_over && before != now => {
                violation(Invariant::EndIsFinal, format!("after the end {before:?} became {now:?}"))
            }
            (Some(before), Some(now)) if now.text_chars < before.text_chars => {
                violation(Invariant::Monotonic, format!("{before:?} became {now:?}"))
            }
            (Some(before), Some(now))
                if now.last_progress_ms < before.last_progress_ms
                    || now.tool_iterations < before.tool_iterations =>
            {
                violation(Invariant::Monotonic, format!("{before:?} became {now:?}"))
            }
            (Some(before), Some(now)) if now.budget_left > before.budget_left => {
                violation(Invariant::Budget, format!("{before:?} became {now:?}"))
            }
            _ => Ok(()),
        };
        self.status = status.or(before);
        result
    }
}
