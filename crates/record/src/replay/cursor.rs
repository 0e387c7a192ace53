//! The replay cursor: replays one request of a recording.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use deftool_chat::Body;
use deftool_chat::request::{Event, FailureKind, Outcome};
use deftool_process::lock;
use serde_json::Value;

use super::calls::Calls;
use super::model::{RecordedTime, ReplayDifference, ReplayOptions};
use crate::compare::{Difference, differences};
use crate::recording::{
    Line, RecordedEvent, RecordedRequest, Recording, Session, Stopped, redact_outcome, refer_to_media,
};
use crate::secrets::Mask;
use crate::stored::fit;

/// The position of a request in its recording.
#[derive(Debug, Clone, Copy)]
struct RequestPosition {
    number: usize,
    is_one_of_many: bool,
}

/// A recorded request, and the state and the differences of its replay.
#[derive(Debug)]
pub struct ReplayCursor {
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
    /// Returns a cursor for each request of a recording.
    pub fn of_recording(recording: Recording, options: ReplayOptions) -> Vec<Self> {
        let mask = Arc::new(Mask::new(options.secrets.clone()));
        let options = Arc::new(options);
        let requests = recording.into_requests();
        let is_one_of_many = requests.len() > 1;
        let numbered = requests.into_iter().zip(1..);
        let cursors = numbered.map(|(request, number)| {
            let position = RequestPosition { number, is_one_of_many };
            Self::new(request, position, Arc::clone(&options), Arc::clone(&mask))
        });
        cursors.collect()
    }

    fn new(
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

    /// Returns the inputs of the recorded request.
    pub fn session(&self) -> &Session {
        &self.request.session
    }

    /// Returns the time of the replayed request, which this cursor sets.
    pub fn time(&self) -> RecordedTime {
        self.time.clone()
    }

    /// Whether to answer a request that differs from the recorded request.
    pub fn is_lenient(&self) -> bool {
        self.options.lenient
    }

    /// Returns the differences so far.
    pub fn differences(&self) -> Vec<ReplayDifference> {
        lock(&self.reported).clone()
    }

    /// Returns the sent bodies in order, without secrets, each with the line number of the recorded body.
    pub fn bodies(&self) -> Vec<(usize, Value)> {
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
    pub fn reload_before(&self, turn: u32) -> Option<(u64, String)> {
        let mut reload = None;
        for RecordedEvent { at_ms, event, .. } in &self.request.events {
            match event {
                Event::Reloaded { generation, detail } => reload = Some((*at_ms, *generation, detail)),
                Event::TurnStarted { turn: started, .. } if *started >= turn => break,
                Event::TurnStarted { .. } => reload = None,
                _ => {}
            }
        }
        let (at_ms, generation, detail) = reload?;
        self.time.advance_to(at_ms);
        Some((generation, detail.clone()))
    }

    /// Compares the end of the request with the recorded end, and reports chat requests that were not sent.
    pub fn on_end(&self, outcome: &Outcome) {
        if outcome.kind.as_deref() == Some(FailureKind::ReplayDiffers.as_str()) {
            // The differences are usually already reported, field by field.
            if self.differences().is_empty() {
                self.report("outcome", outcome.detail.clone().unwrap_or_default(), None);
            }
            return;
        }
        let sent = self.sent.load(Ordering::Acquire);
        let unsent = self.request_lines.get(sent).and_then(|index| self.line(*index));
        if let Some(Line::Request { turn, attempt, .. }) = unsent {
            let message = format!(
                "recorded {} chat requests, now {sent}: turn {turn}, attempt {attempt} was not sent",
                self.request_lines.len()
            );
            self.report("requests", message, None);
        }
        let Some(recorded) = self.request.outcome() else { return };
        let mut now = outcome.clone();
        redact_outcome(&mut now, &self.mask);
        let [Ok(recorded), Ok(now)] = [recorded, &now].map(serde_json::to_value) else { return };
        let ends = |outcome: &Value| {
            let member =
                |name: &str| outcome.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            (member("state"), member("fail_reason"), member("detail"))
        };
        let (before, after) = (ends(&recorded), ends(&now));
        if (&before.0, &before.1) != (&after.0, &after.1) {
            // Other differences are consequences of this one.
            let how = |(state, _, detail): (String, String, String)| {
                if detail.is_empty() { state } else { format!("{state} ({detail})") }
            };
            self.report("outcome", format!("recorded {}, now {}", how(before), how(after)), None);
            return;
        }
        let [before, mut after] = [&recorded, &now].map(without_times);
        drop_new_counts(&before, &mut after);
        self.report_fields("outcome", differences(&before, &after));
    }

    /// Begins the next chat request. Returns the index of its line; `None`: the recording has no other chat request.
    pub fn next_exchange(&self) -> Option<usize> {
        let nth = self.sent.fetch_add(1, Ordering::AcqRel);
        self.request_lines.get(nth).copied()
    }

    /// Returns the line at an index. The lines of an exchange follow the line of its chat request.
    pub fn line(&self, index: usize) -> Option<&Line> {
        self.request.lines.get(index).map(|(_, line)| line)
    }

    /// Returns where the recorded request was stopped, if it was.
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.clone()
    }

    /// Reports a chat request that the recording does not contain. Returns the text of the difference.
    pub fn report_unrecorded(&self, turn: u32, attempt: u32) -> String {
        let message = String::from("not recorded: the recorded session ended earlier");
        self.report(&format!("turn {turn}, attempt {attempt}"), message, None)
    }

    /// Compares a body with the recorded one at this index. Returns the texts of the differences.
    pub fn compare(&self, index: usize, turn: u32, body: &Body) -> Vec<String> {
        let Some((number, Line::Request { body: recorded, tools, .. })) = self.request.lines.get(index)
        else {
            return Vec::new();
        };
        let mut now = body.to_value();
        refer_to_media(&mut now);
        self.mask.value(&mut now);
        fit(&mut now);
        lock(&self.bodies).push((*number, now.clone()));
        let newest = match self.request_lines.last().and_then(|last| self.line(*last)) {
            Some(Line::Request { tools, .. }) => tools.as_ref(),
            _ => None,
        };
        let found = if tools.is_some() && tools.as_ref() != newest {
            // The tools were reloaded after this turn. The current tools can match only the last recorded tools.
            let mut recorded = recorded.clone();
            for body in [&mut recorded, &mut now] {
                body.as_object_mut().map(|members| members.shift_remove("tools"));
            }
            differences(&recorded, &now)
        } else {
            differences(recorded, &now)
        };
        self.report_fields(&format!("turn {turn}"), found)
    }
}

/// Returns an outcome without its times, which are those of the server.
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
