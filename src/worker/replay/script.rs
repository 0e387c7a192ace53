//! One request of a recording, being played.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::calls::Calls;
use super::{ReplayDifference, ReplayOptions};
use crate::request::{Outcome, kind};
use crate::worker::clock::Clock;
use crate::worker::compare::{Difference, differences};
use crate::worker::recording::{Line, RecordedRequest, Session, Stopped, fit, redact_outcome};
use crate::worker::secrets::Mask;
use crate::worker::transport::{Incoming, Outgoing, TransportError};

/// The longest wait between two lines, whatever the recording says.
const MAX_GAP: Duration = Duration::from_secs(3600);

/// Which request of a recording it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) number: usize,
    pub(super) is_one_of_many: bool,
}

/// A recorded request with what became of it in this replay.
#[derive(Debug)]
pub(in crate::worker) struct Script {
    place: Place,
    request: RecordedRequest,
    /// Where its chat requests stand among its lines.
    asked: Vec<usize>,
    pub(super) options: Arc<ReplayOptions>,
    pub(super) mask: Arc<Mask>,
    clock: Arc<Clock>,
    stopped: Option<Stopped>,
    sent: AtomicUsize,
    pub(super) calls: Calls,
    told: Mutex<Vec<ReplayDifference>>,
    bodies: Mutex<Vec<(usize, Value)>>,
}

impl Script {
    pub(super) fn new(
        request: RecordedRequest,
        place: Place,
        options: Arc<ReplayOptions>,
        mask: Arc<Mask>,
    ) -> Self {
        let is_asked = |(index, (_, line)): (usize, &(usize, Line))| {
            matches!(line, Line::Request { .. }).then_some(index)
        };
        let asked = request.lines.iter().enumerate().filter_map(is_asked).collect();
        Self {
            calls: Calls::of(&request),
            place,
            asked,
            options,
            mask,
            clock: Arc::new(Clock::recorded()),
            stopped: request.stopped(),
            sent: AtomicUsize::new(0),
            told: Mutex::default(),
            bodies: Mutex::default(),
            request,
        }
    }

    pub(in crate::worker) fn session(&self) -> &Session {
        &self.request.session
    }

    pub(in crate::worker) fn clock(&self) -> Arc<Clock> {
        Arc::clone(&self.clock)
    }

    pub(super) fn differences(&self) -> Vec<ReplayDifference> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn bodies(&self) -> Vec<(usize, Value)> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a difference and gives it as a person reads it.
    pub(super) fn tell(&self, place: &str, message: String, field: Option<Difference>) -> String {
        let Place { number, is_one_of_many } = self.place;
        let told =
            ReplayDifference { request: number, place: place.to_owned(), message, field, is_one_of_many };
        let text = told.to_string();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        text
    }

    pub(super) fn tell_fields(&self, place: &str, found: Vec<Difference>) -> Vec<String> {
        found.into_iter().map(|field| self.tell(place, field.to_string(), Some(field))).collect()
    }

    /// The reload before turn `turn`, if there was one: generation and what changed.
    pub(in crate::worker) fn reload_before(&self, turn: u32) -> Option<(u64, String)> {
        self.request.lines.iter().find_map(|(_, line)| match line {
            Line::Reloaded { at_ms, turn: recorded, generation, detail, .. } if *recorded == turn => {
                self.clock.reach(*at_ms);
                Some((*generation, detail.clone()))
            }
            _ => None,
        })
    }

    /// The request is over: what the recording says of its end, and what it had more.
    pub(in crate::worker) fn ended(&self, outcome: &Outcome) {
        if outcome.kind.as_deref() == Some(kind::REPLAY_DIFFERS) {
            // Mostly it was told before, field by field.
            if self.differences().is_empty() {
                self.tell("outcome", outcome.detail.clone().unwrap_or_default(), None);
            }
            return;
        }
        let sent = self.sent.load(Ordering::Acquire);
        if let Some(Line::Request { turn, attempt, .. }) = self.line(sent) {
            let message = format!(
                "recorded {} chat requests, now {sent}: turn {turn}, attempt {attempt} was not asked for",
                self.asked.len()
            );
            self.tell("requests", message, None);
        }
        let Some(recorded) = self.request.outcome() else { return };
        let Ok(mut now) = serde_json::to_value(outcome) else { return };
        redact_outcome(&mut now, &self.mask);
        fit(&mut now);
        let ends = |outcome: &Value| {
            let member =
                |name: &str| outcome.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            (member("state"), member("fail_reason"), member("detail"))
        };
        let (before, after) = (ends(recorded), ends(&now));
        if (&before.0, &before.1) != (&after.0, &after.1) {
            // The rest follows from it.
            let how = |(state, _, detail): (String, String, String)| {
                if detail.is_empty() { state } else { format!("{state} ({detail})") }
            };
            self.tell("outcome", format!("recorded {}, now {}", how(before), how(after)), None);
            return;
        }
        self.tell_fields("outcome", differences(recorded, &now, false));
    }

    /// The `nth` chat request that was recorded.
    fn line(&self, nth: usize) -> Option<&Line> {
        self.asked.get(nth).and_then(|at| self.request.lines.get(*at)).map(|(_, line)| line)
    }

    /// Waits as long as the recording waited, if that is wanted.
    async fn reach(&self, at_ms: u64) {
        let gap = Duration::from_millis(at_ms.saturating_sub(self.clock.now_ms()));
        if let Some(gap) = self.paced(gap) {
            tokio::time::sleep(gap).await;
        }
        self.clock.reach(at_ms);
    }

    /// How long a wait takes in this replay; `None`: no time.
    pub(super) fn paced(&self, gap: Duration) -> Option<Duration> {
        let pace = self.options.pace.filter(|pace| pace.is_finite() && *pace > 0.0)?;
        Duration::try_from_secs_f64(gap.min(MAX_GAP).as_secs_f64() / pace).ok().map(|gap| gap.min(MAX_GAP))
    }

    /// Where the recorded request was stopped, if it was.
    pub(in crate::worker) fn stopped(&self) -> Option<Stopped> {
        self.stopped.clone()
    }

    async fn stop(&self, Stopped { at_ms, failure, .. }: Stopped) -> TransportError {
        self.reach(at_ms).await;
        TransportError::Stopped { failure }
    }

    /// Holds a body against the recorded one; the differences as a person reads them.
    fn compare(&self, nth: usize, turn: u32, body: &Value) -> Vec<String> {
        let Some(Line::Request { body: recorded, tools, .. }) = self.line(nth) else { return Vec::new() };
        let mut now = body.clone();
        self.mask.value(&mut now);
        fit(&mut now);
        if let Some((line, _)) = self.asked.get(nth).and_then(|at| self.request.lines.get(*at)) {
            let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
            bodies.push((*line, now.clone()));
        }
        let last = self.asked.len().checked_sub(1).and_then(|last| self.line(last));
        let newest = match last {
            Some(Line::Request { tools, .. }) => tools.as_ref(),
            _ => None,
        };
        let found = if tools.is_some() && tools.as_ref() != newest {
            // These tools were replaced while the session ran: today's can only be those of its end.
            let mut recorded = recorded.clone();
            for body in [&mut recorded, &mut now] {
                body.as_object_mut().map(|members| members.shift_remove("tools"));
            }
            differences(&recorded, &now, self.options.key_order)
        } else {
            differences(recorded, &now, self.options.key_order)
        };
        self.tell_fields(&format!("turn {turn}"), found)
    }
}

/// What was recorded for the next chat request of `script`.
pub(super) async fn answer(script: Arc<Script>, outgoing: Outgoing) -> Result<Incoming, TransportError> {
    let Outgoing { turn, attempt, body, .. } = outgoing;
    let nth = script.sent.fetch_add(1, Ordering::AcqRel);
    let Some(start) = script.asked.get(nth).copied() else {
        if let Some(stopped) = script.stopped() {
            return Err(script.stop(stopped).await);
        }
        let message = String::from("not recorded; the recorded session ended before it");
        let told = script.tell(&format!("turn {turn}, attempt {attempt}"), message, None);
        return Err(TransportError::Differs { differences: vec![told] });
    };
    if let Some(Line::Request { at_ms, .. }) = script.line(nth) {
        script.reach(*at_ms).await;
    }
    let differences = script.compare(nth, turn, &body);
    if !differences.is_empty() && !script.options.lenient {
        return Err(TransportError::Differs { differences });
    }
    match script.request.lines.get(start + 1).map(|(_, line)| line) {
        Some(Line::Response { at_ms, status, retry_after_ms, location }) => {
            script.reach(*at_ms).await;
            let (status, location) = (*status, location.clone());
            let retry_after = retry_after_ms.map(Duration::from_millis);
            let body = stream::unfold(Some((script, start + 2)), play).boxed();
            Ok(Incoming { status, retry_after, location, body })
        }
        Some(Line::NoConnection { at_ms, message, refused }) => {
            script.reach(*at_ms).await;
            Err(TransportError::Connect { message: message.clone(), refused: *refused })
        }
        Some(Line::Stopped(stopped)) => Err(script.stop(stopped.clone()).await),
        _ => Err(recording_ends()),
    }
}

/// One step of a body: what it gives, and where it goes on; `None`: it is over.
async fn play(
    state: Option<(Arc<Script>, usize)>,
) -> Option<(Result<Vec<u8>, TransportError>, Option<(Arc<Script>, usize)>)> {
    let (script, index) = state?;
    let line = script.request.lines.get(index).map(|(_, line)| line.clone());
    match line {
        Some(Line::Data { at_ms, text, bytes }) => {
            script.reach(at_ms).await;
            let bytes = text.map(String::into_bytes).or(bytes).unwrap_or_default();
            Some((Ok(bytes), Some((script, index + 1))))
        }
        Some(Line::End { at_ms, error }) => {
            script.reach(at_ms).await;
            error.map(|message| (Err(TransportError::Broken { message }), None))
        }
        Some(Line::Stopped(stopped)) => Some((Err(script.stop(stopped).await), None)),
        // The machine ended the request here, or the writer was stopped.
        Some(Line::Finished { .. }) | None => Some((Err(recording_ends()), None)),
        // What comes after a body that has no end is not the body's.
        Some(
            Line::Session { .. }
            | Line::Request { .. }
            | Line::Response { .. }
            | Line::NoConnection { .. }
            | Line::Tool { .. }
            | Line::ToolStarted { .. }
            | Line::ToolFinished { .. }
            | Line::Approval { .. }
            | Line::Reloaded { .. },
        ) => None,
    }
}

fn recording_ends() -> TransportError {
    TransportError::Broken { message: String::from("the recording ends here") }
}
