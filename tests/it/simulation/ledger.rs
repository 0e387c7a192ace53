//! What happened to each request so far, as the world itself saw it, and by when something must happen next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use deftool::request::{Event, RequestStatus};
use deftool::spec::Timers;
use deftool::tool::ToolErrorKind;
use serde_json::Value;

use super::laws::{Broken, Law};
use super::pages::Drains;
use super::script::{Frame, Head, Script};
use super::swaps::Forms;
use super::tools::Generation;

/// Timers fire on whole milliseconds, the one after their time.
pub(super) const SLACK: Duration = Duration::from_millis(3);
/// How long a body that said its last word may keep a request.
pub(super) const LAST_WORD: Duration = Duration::from_millis(50);

/// Everything that was noted down.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) cases: BTreeMap<usize, Case>,
    pub(super) features: BTreeMap<String, usize>,
    pub(super) trace: Option<Vec<String>>,
    /// When the source of the tools last panicked.
    pub(super) source_panicked: Option<Duration>,
    /// Slots that must be kept back.
    pub(super) drains: Drains,
    pub(super) was_stopped: bool,
    /// It was told last that the server takes nothing.
    pub(super) is_unready: bool,
    /// Forms that the server took: later requests begin with them.
    pub(super) learned: Forms,
    /// Somebody submits just now, and may be asked nothing.
    pub(super) in_submit: bool,
    /// The first law that did not hold.
    pub(super) broken: Option<Broken>,
}

impl Ledger {
    pub(super) fn note(&mut self, result: Result<(), Broken>) {
        if let Err(broken) = result {
            self.broken.get_or_insert(broken);
        }
    }

    pub(super) fn hold(&mut self, law: Law, holds: bool, how: impl FnOnce() -> String) {
        if !holds {
            self.note(Err(Broken { law, how: how() }));
        }
    }

    /// The server took the form of a request.
    pub(super) fn learn(&mut self, number: usize) {
        let Some(case) = self.cases.get(&number) else { return };
        let last = case.turns.last().and_then(|turn| turn.exchanges.last());
        if last.is_some_and(|exchange| exchange.streams && exchange.script.head == Head::Ok) {
            self.learned.extend(case.forms.iter().copied());
        }
    }

    pub(super) fn count(&mut self, feature: impl Into<String>) {
        *self.features.entry(feature.into()).or_default() += 1;
    }
}

/// One request that was taken.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Case {
    pub(super) id: String,
    pub(super) turns: Vec<Turn>,
    /// Exchanges that the worker has not let go: it waits for a head, or holds a stream.
    pub(super) open: usize,
    /// The forms that it has taken.
    pub(super) forms: Forms,
    /// As [`Case::executed`], of the case before, whose conversation this one goes on with.
    pub(super) past: BTreeMap<String, Option<Value>>,
    /// Every call that was executed and, once it has one, its result.
    pub(super) executed: BTreeMap<String, Option<Value>>,
    pub(super) allowed: BTreeSet<String>,
    /// Calls that run now, and by when each must have ended.
    pub(super) running: BTreeMap<String, Duration>,
    /// Calls about which a person is asked.
    pub(super) asked: BTreeSet<String>,
    /// By when something must happen, should nothing run and nobody be asked.
    pub(super) due: Option<(Duration, &'static str)>,
    /// Before that no further try is made.
    pub(super) not_before: Duration,
    /// By when it must be over.
    pub(super) over_by: Option<(Duration, &'static str)>,
    pub(super) canceled: bool,
    pub(super) stopped: bool,
    /// It had asked when the worker was restarted.
    pub(super) restarted: bool,
    pub(super) status: Option<RequestStatus>,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) is_over: bool,
    pub(super) taken: bool,
    pub(super) forgotten: bool,
}

/// One model turn.
pub(super) struct Turn {
    pub(super) generation: Arc<Generation>,
    pub(super) exchanges: Vec<Exchange>,
    /// How the calls of the turn ended, in the order they did; `None`: well.
    pub(super) deeds: Vec<Option<ToolErrorKind>>,
    /// Whether any call was executed.
    pub(super) is_paid: bool,
}

/// One request to the server and what came of it.
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Exchange {
    pub(super) attempt: u32,
    /// How often the same was sent before; another form of it is not the same.
    pub(super) retries: u32,
    pub(super) body: Value,
    pub(super) streams: bool,
    pub(super) script: Script,
    /// Frames that were delivered whole.
    pub(super) frames: usize,
    /// Text in them, in bytes.
    pub(super) text: usize,
    pub(super) any_byte: bool,
    /// A head is there, or none will be, after which nothing works on it any more.
    pub(super) is_answered: bool,
    /// The body has ended.
    pub(super) is_over: bool,
    /// How often token counts were told.
    pub(super) usages: u64,
    pub(super) clock: StreamClock,
}

/// The timers of a stream, as the laws reckon them.
#[derive(Default)]
pub(super) struct StreamClock {
    byte: Duration,
    token: Duration,
    any_token: bool,
    finish: Option<Duration>,
}

impl Exchange {
    pub(super) fn new(attempt: u32, body: Value, streams: bool, script: Script) -> Self {
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
        }
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.frames == self.script.frames.len()
    }

    /// Whether it says that its model is being loaded.
    pub(super) fn says_it_loads(&self) -> bool {
        self.is_delivered() && self.script.features.contains(&"head: loading")
    }

    /// Whether all that the reply says has come; token counts may follow.
    pub(super) fn is_said(&self) -> bool {
        let came = self.script.frames.iter().take(self.frames);
        self.is_delivered() || came.into_iter().any(|frame| frame.is_finish || frame.is_last)
    }

    /// Whether it said its last word.
    pub(super) fn is_ended(&self) -> bool {
        self.is_over || self.script.frames.iter().take(self.frames).any(|frame| frame.is_last)
    }

    /// Whether the server may be reading its prompt, and would go on without a client.
    pub(super) fn may_be_read(&self) -> bool {
        let has_begun = |frame: &Frame| frame.is_token || frame.is_finish || frame.is_last;
        let has_begun = self.script.frames.iter().take(self.frames).any(has_begun);
        !self.is_answered && !self.is_over && !has_begun
    }

    /// The head is there; by when something must follow.
    pub(super) fn head_came(&mut self, now: Duration, timers: &Timers) -> (Duration, &'static str) {
        self.is_answered = self.script.head != Head::Ok || !self.streams;
        match self.script.head {
            Head::Ok if self.streams => {
                self.clock.byte = now + timers.stall;
                self.clock.token = now + timers.first_token;
                (self.clock.byte.min(self.clock.token), "the first byte or token")
            }
            Head::Status { .. } => (now + timers.stall.min(Duration::from_secs(10)), "the body of an error"),
            Head::Ok | Head::Refused | Head::Unreachable | Head::Broken | Head::Panics => (now, "an answer"),
        }
    }

    /// Bytes come, and with them the ends of `frames` frames.
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
        self.usages += whole.iter().filter(|frame| frame.is_usage).count() as u64;
        if self.script.head != Head::Ok {
            return None;
        }
        let clock = &mut self.clock;
        clock.byte = now + timers.stall;
        for frame in whole {
            if frame.is_token {
                clock.any_token = true;
                clock.token = now + timers.token_stall;
            } else if frame.is_progress && !clock.any_token {
                clock.token = now + timers.first_token;
            }
            if frame.is_finish {
                clock.finish.get_or_insert(now + Duration::from_secs(5));
            }
            if frame.is_last {
                return Some((now + LAST_WORD, "the end after the last word"));
            }
        }
        let next = clock.byte.min(clock.token);
        Some((clock.finish.map_or(next, |finish| finish.min(next)), "the next byte or token"))
    }
}

impl Case {
    /// The last try of the present turn.
    pub(super) fn last_attempt(&self) -> u32 {
        self.turns.last().and_then(|turn| turn.exchanges.last()).map_or(0, |exchange| exchange.attempt)
    }

    /// By when something must happen.
    pub(super) fn next_due(&self) -> Option<(Duration, &'static str)> {
        if self.is_over {
            return None;
        }
        let soft = if !self.asked.is_empty() {
            None
        } else if let Some(last) = self.running.values().max() {
            Some((*last, "the end of its tools"))
        } else {
            self.due
        };
        [soft, self.over_by].into_iter().flatten().min_by_key(|(due, _)| *due)
    }

    /// Something happened: it was in time, or the law is broken.
    pub(super) fn in_time(&self, now: Duration) -> Result<(), Broken> {
        match self.next_due() {
            Some((due, what)) if now > due + SLACK => {
                let how = format!("{}: {what} was due at {due:?}, and it is {now:?}", self.id);
                Err(Broken { law: Law::Ends, how })
            }
            _ => Ok(()),
        }
    }

    /// It must be over soon.
    pub(super) fn must_end(&mut self, by: Duration, why: &'static str) {
        if self.over_by.is_none_or(|(before, _)| by < before) {
            self.over_by = Some((by, why));
        }
    }

    /// Takes what a status says now.
    pub(super) fn see(&mut self, status: Option<RequestStatus>) -> Result<(), Broken> {
        let broken = |law, how: String| Err(Broken { law, how });
        let before = self.status.take();
        let was_over = before.as_ref().is_some_and(|status| super::face::is_over(status.state));
        let result = match (&before, &status) {
            (Some(before), Some(now)) if was_over && before != now => {
                broken(Law::Settled, format!("after the end {before:?} became {now:?}"))
            }
            (Some(before), Some(now)) if now.text_chars < before.text_chars => {
                broken(Law::Grows, format!("{before:?} became {now:?}"))
            }
            (Some(before), Some(now))
                if now.last_progress_ms < before.last_progress_ms
                    || now.tool_iterations < before.tool_iterations =>
            {
                broken(Law::Grows, format!("{before:?} became {now:?}"))
            }
            (Some(before), Some(now)) if now.budget_left > before.budget_left => {
                broken(Law::Budget, format!("{before:?} became {now:?}"))
            }
            _ => Ok(()),
        };
        self.status = status.or(before);
        result
    }
}
