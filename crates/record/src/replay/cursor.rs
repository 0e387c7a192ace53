//! The replay cursor: replays one request of a recording.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use deftool_chat::Body;
use deftool_chat::request::{Outcome, kind};
use deftool_process::lock;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::calls::Calls;
use super::model::{ReplayDifference, ReplayOptions};
use crate::compare::{Difference, differences};
use crate::recording::{Line, RecordedRequest, Session, Stopped, fit, redact_outcome};
use crate::secrets::Mask;
use crate::time::{Clock, RecordedTime};
use crate::transport::{Incoming, Outgoing, TransportError};

/// Maximum delay between two lines.
const MAX_GAP: Duration = Duration::from_secs(3600);

/// The position of a request in its recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPosition {
    pub(super) number: usize,
    pub(super) is_one_of_many: bool,
}

/// A recorded request, and the state and the differences of its replay.
#[derive(Debug)]
pub(crate) struct ReplayCursor {
    position: RequestPosition,
    request: RecordedRequest,
    /// Indexes of the lines with chat requests.
    request_lines: Vec<usize>,
    pub(super) options: Arc<ReplayOptions>,
    pub(super) mask: Arc<Mask>,
    pub(super) time: RecordedTime,
    stopped: Option<Stopped>,
    sent: AtomicUsize,
    pub(super) calls: Calls,
    reported: Mutex<Vec<ReplayDifference>>,
    bodies: Mutex<Vec<(usize, Value)>>,
}

impl ReplayCursor {
    pub(super) fn new(
        request: RecordedRequest,
        position: RequestPosition,
        options: Arc<ReplayOptions>,
        mask: Arc<Mask>,
    ) -> Self {
        let is_request = |(index, (_, line)): (usize, &(usize, Line))| {
            matches!(line, Line::Request { .. }).then_some(index)
        };
        let request_lines = request.lines.iter().enumerate().filter_map(is_request).collect();
        Self {
            calls: Calls::of(&request),
            position,
            request_lines,
            options,
            mask,
            time: RecordedTime::default(),
            stopped: request.stopped(),
            sent: AtomicUsize::new(0),
            reported: Mutex::default(),
            bodies: Mutex::default(),
            request,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.request.session
    }

    /// Returns the clock of the replayed request.
    pub(crate) fn clock(&self) -> Clock {
        Clock::Recorded(self.time.clone())
    }

    pub(super) fn differences(&self) -> Vec<ReplayDifference> {
        lock(&self.reported).clone()
    }

    pub(super) fn bodies(&self) -> Vec<(usize, Value)> {
        lock(&self.bodies).clone()
    }

    /// Stores a difference and returns its text.
    pub(super) fn report(&self, place: &str, message: String, field: Option<Difference>) -> String {
        let RequestPosition { number, is_one_of_many } = self.position;
        let difference =
            ReplayDifference { request: number, place: place.to_owned(), message, field, is_one_of_many };
        let text = difference.to_string();
        lock(&self.reported).push(difference);
        text
    }

    pub(super) fn report_fields(&self, place: &str, found: Vec<Difference>) -> Vec<String> {
        found.into_iter().map(|field| self.report(place, field.to_string(), Some(field))).collect()
    }

    /// Returns the reload before turn `turn`, if there was one: the generation and the changes.
    pub(crate) fn reload_before(&self, turn: u32) -> Option<(u64, String)> {
        self.request.lines.iter().find_map(|(_, line)| match line {
            Line::Reloaded { at_ms, turn: recorded, generation, detail, .. } if *recorded == turn => {
                self.time.advance_to(*at_ms);
                Some((*generation, detail.clone()))
            }
            _ => None,
        })
    }

    /// Compares the end of the request with the recorded end, and reports chat requests that were not sent.
    pub(crate) fn on_end(&self, outcome: &Outcome) {
        if outcome.kind.as_deref() == Some(kind::REPLAY_DIFFERS) {
            // The differences are usually already reported, field by field.
            if self.differences().is_empty() {
                self.report("outcome", outcome.detail.clone().unwrap_or_default(), None);
            }
            return;
        }
        let sent = self.sent.load(Ordering::Acquire);
        if let Some(Line::Request { turn, attempt, .. }) = self.line(sent) {
            let message = format!(
                "recorded {} chat requests, now {sent}: turn {turn}, attempt {attempt} was not sent",
                self.request_lines.len()
            );
            self.report("requests", message, None);
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
            // Other differences are consequences of this one.
            let how = |(state, _, detail): (String, String, String)| {
                if detail.is_empty() { state } else { format!("{state} ({detail})") }
            };
            self.report("outcome", format!("recorded {}, now {}", how(before), how(after)), None);
            return;
        }
        let [before, mut after] = [recorded, &now].map(without_times);
        drop_new_counts(&before, &mut after);
        self.report_fields("outcome", differences(&before, &after, false));
    }

    /// Returns the `nth` recorded chat request.
    fn line(&self, nth: usize) -> Option<&Line> {
        self.request_lines.get(nth).and_then(|at| self.request.lines.get(*at)).map(|(_, line)| line)
    }

    /// Advances the clock to `at_ms`, after the recorded delay if the replay is paced.
    async fn reach(&self, at_ms: u64) {
        let gap = Duration::from_millis(at_ms.saturating_sub(self.time.now_ms()));
        if let Some(gap) = self.paced(gap) {
            tokio::time::sleep(gap).await;
        }
        self.time.advance_to(at_ms);
    }

    /// Returns the delay of this replay for a recorded delay; `None`: no delay.
    pub(super) fn paced(&self, gap: Duration) -> Option<Duration> {
        let pace = self.options.pace.filter(|pace| pace.is_finite() && *pace > 0.0)?;
        Duration::try_from_secs_f64(gap.min(MAX_GAP).as_secs_f64() / pace).ok().map(|gap| gap.min(MAX_GAP))
    }

    /// Returns where the recorded request was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.stopped.clone()
    }

    async fn stop(&self, Stopped { at_ms, failure, .. }: Stopped) -> TransportError {
        self.reach(at_ms).await;
        TransportError::Stopped { failure }
    }

    /// Compares a body with the recorded one. Returns the texts of the differences.
    fn compare(&self, nth: usize, turn: u32, body: &Body) -> Vec<String> {
        let Some(Line::Request { body: recorded, tools, .. }) = self.line(nth) else { return Vec::new() };
        let mut now = body.to_value();
        self.mask.value(&mut now);
        fit(&mut now);
        if let Some((line, _)) = self.request_lines.get(nth).and_then(|at| self.request.lines.get(*at)) {
            let mut bodies = lock(&self.bodies);
            bodies.push((*line, now.clone()));
        }
        let last = self.request_lines.len().checked_sub(1).and_then(|last| self.line(last));
        let newest = match last {
            Some(Line::Request { tools, .. }) => tools.as_ref(),
            _ => None,
        };
        let found = if tools.is_some() && tools.as_ref() != newest {
            // The tools were reloaded after this turn. The current tools can match only the last recorded tools.
            let mut recorded = recorded.clone();
            for body in [&mut recorded, &mut now] {
                body.as_object_mut().map(|members| members.shift_remove("tools"));
            }
            differences(&recorded, &now, self.options.key_order)
        } else {
            differences(recorded, &now, self.options.key_order)
        };
        self.report_fields(&format!("turn {turn}"), found)
    }
}

/// Returns the recorded response to the next chat request of `cursor`.
pub(super) async fn answer(
    cursor: Arc<ReplayCursor>,
    outgoing: Outgoing,
) -> Result<Incoming, TransportError> {
    let Outgoing { turn, attempt, body, .. } = outgoing;
    let nth = cursor.sent.fetch_add(1, Ordering::AcqRel);
    let Some(start) = cursor.request_lines.get(nth).copied() else {
        if let Some(stopped) = cursor.stopped() {
            return Err(cursor.stop(stopped).await);
        }
        let message = String::from("not recorded: the recorded session ended earlier");
        let difference = cursor.report(&format!("turn {turn}, attempt {attempt}"), message, None);
        return Err(TransportError::Differs { differences: vec![difference] });
    };
    if let Some(Line::Request { at_ms, .. }) = cursor.line(nth) {
        cursor.reach(*at_ms).await;
    }
    let differences = cursor.compare(nth, turn, &body);
    if !differences.is_empty() && !cursor.options.lenient {
        return Err(TransportError::Differs { differences });
    }
    match cursor.request.lines.get(start + 1).map(|(_, line)| line) {
        Some(Line::Response { at_ms, status, retry_after_ms, should_retry, location }) => {
            cursor.reach(*at_ms).await;
            let (status, should_retry, location) = (*status, *should_retry, location.clone());
            let retry_after = retry_after_ms.map(Duration::from_millis);
            let body = stream::unfold(Some((cursor, start + 2)), play).boxed();
            Ok(Incoming { status, retry_after, should_retry, location, body })
        }
        Some(Line::NoConnection { at_ms, message, refused, sent }) => {
            cursor.reach(*at_ms).await;
            // The failure may be a consequence of the loss of a managed server, which a replay does not have.
            if let Some((_, Line::Stopped(stopped))) = cursor.request.lines.get(start + 2) {
                return Err(cursor.stop(stopped.clone()).await);
            }
            let message = message.clone();
            Err(if *sent {
                TransportError::Broken { message }
            } else {
                TransportError::Connect { message, refused: *refused }
            })
        }
        Some(Line::Stopped(stopped)) => Err(cursor.stop(stopped.clone()).await),
        _ => Err(recording_ends()),
    }
}

/// One step of a body: returns its item and the next state; `None`: the end of the body.
async fn play(
    state: Option<(Arc<ReplayCursor>, usize)>,
) -> Option<(Result<Bytes, TransportError>, Option<(Arc<ReplayCursor>, usize)>)> {
    let (cursor, index) = state?;
    let line = cursor.request.lines.get(index).map(|(_, line)| line.clone());
    match line {
        Some(Line::Data { at_ms, text, bytes }) => {
            cursor.reach(at_ms).await;
            let bytes = text.map(String::into_bytes).or(bytes).unwrap_or_default();
            Some((Ok(bytes.into()), Some((cursor, index + 1))))
        }
        Some(Line::End { at_ms, error }) => {
            cursor.reach(at_ms).await;
            error.map(|message| (Err(TransportError::Broken { message }), None))
        }
        Some(Line::Stopped(stopped)) => Some((Err(cursor.stop(stopped).await), None)),
        // The request machine ended the request here, or the writer was stopped.
        Some(Line::Finished { .. }) | None => Some((Err(recording_ends()), None)),
        // Any other line: the end of the body was not recorded.
        Some(
            Line::Session { .. }
            | Line::Request { .. }
            | Line::Response { .. }
            | Line::NoConnection { .. }
            | Line::Tool { .. }
            | Line::ToolStarted { .. }
            | Line::ToolFinished { .. }
            | Line::Approval { .. }
            | Line::Log { .. }
            | Line::Reloaded { .. },
        ) => None,
    }
}

fn recording_ends() -> TransportError {
    TransportError::Broken { message: String::from("the recording ends here") }
}

/// Returns an outcome without its times. In older recordings, those of signals are the end of the reply.
fn without_times(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    outcome.as_object_mut().map(|members| members.shift_remove("first_token_ms"));
    let signals = outcome.get_mut("signals").and_then(Value::as_array_mut);
    for signal in signals.into_iter().flatten().filter_map(Value::as_object_mut) {
        signal.shift_remove("emitted_at_ms");
    }
    outcome
}

/// Removes the counts from the outcome of a replay that the recorded outcome does not have: an older version did not
/// count them.
fn drop_new_counts(recorded: &Value, now: &mut Value) {
    let Some(members) = now.as_object_mut() else { return };
    match (recorded.get("usage"), members.get_mut("usage").and_then(Value::as_object_mut)) {
        (Some(recorded), Some(counts)) => counts.retain(|name, _| recorded.get(name).is_some()),
        (None, _) => drop(members.shift_remove("usage")),
        (Some(_), None) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_that_an_older_version_did_not_record_are_ignored() {
        let now = json!({"text": "a", "usage": {"prompt_tokens": 3, "cached_tokens": 2, "retries": 1}});
        for (recorded, kept) in [
            (json!({"text": "a"}), json!({"text": "a"})),
            (json!({"usage": {"prompt_tokens": 4}}), json!({"text": "a", "usage": {"prompt_tokens": 3}})),
            (now.clone(), now.clone()),
        ] {
            let mut now = now.clone();
            drop_new_counts(&recorded, &mut now);
            assert_eq!(now, kept);
        }
    }
}
