//! A recording → a timeline.

use std::collections::BTreeMap;

use deftool_chat::request::{FailReason, Failure};
use deftool_chat::{Api, Message};
use serde_json::Value;

use super::calls::Calls;
use super::model::{
    Entry, EntryKind, Place, RequestTimeline, Timeline, TimelineSource, TurnEntry, number_turns, prompt_of,
    short_outcome,
};
use super::reply::{DecodedReply, ReplyReader};
use super::sent::SentBody;
use crate::recording::{Line, RecordedRequest, Recording, Stopped};

/// The name of the fault at the end of a request whose end was not recorded.
pub const RECORDING_CUT: &str = "recording_cut";

impl Timeline {
    /// Returns the timeline of a recording.
    pub fn of_recording(recording: Recording) -> Self {
        let requests = recording.into_requests().into_iter().map(timeline_of).collect();
        Self { source: TimelineSource::Recording, damage: Vec::new(), requests }
    }
}

fn timeline_of(request: RecordedRequest) -> RequestTimeline {
    let is_cut = !request.is_whole();
    let outcome = request.outcome().cloned().unwrap_or_default();
    let signals = outcome.get("signals").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut builder = Builder::new(request.session.api, signals);
    for (number, line) in request.lines {
        builder.line(number, line);
    }
    let mut entries = builder.finish(is_cut);
    let mut logs = request.logs;
    for entry in &mut entries {
        if let EntryKind::Call(call) = &mut entry.kind {
            call.logs = logs.remove(&call.id).unwrap_or_default();
        }
    }
    let session = request.session;
    let mut timeline = RequestTimeline {
        prompt: prompt_of(&session.conversation).to_owned(),
        id: session.request_id,
        job: session.job_name,
        worker: session.worker,
        model: session.model,
        url: session.url,
        engine: session.engine,
        submitted_at_ms: session.submitted_at_ms,
        local_time: format!("{} ({})", session.local_time, session.zone),
        end_ms: entries.iter().map(|entry| entry.end_ms.unwrap_or(entry.at_ms)).max().unwrap_or_default(),
        outcome: short_outcome(&outcome),
        entries: Vec::new(),
        images: BTreeMap::new(),
    };
    timeline.add_images(session.conversation.iter().flat_map(Message::attachments));
    for entry in &entries {
        if let EntryKind::Call(call) = &entry.kind {
            timeline.add_images(&call.attachments);
        }
    }
    RequestTimeline { entries, ..timeline }
}

/// The state while the lines of a request are read.
struct Builder {
    /// The API of the session.
    api: Api,
    entries: Vec<Entry>,
    calls: Calls,
    /// The body of the current chat request.
    sent: SentBody,
    /// The body of the last chat request of the previous turn.
    previous: SentBody,
    /// The current chat request. It becomes an entry when its reply has ended.
    turn: Option<(Place, TurnEntry)>,
    reply: Option<ReplyReader>,
    /// The last line that was read.
    last: Place,
    /// When the last reply ended.
    reply_end_ms: u64,
}

impl Builder {
    fn new(api: Api, signals: Vec<Value>) -> Self {
        Self {
            api,
            entries: Vec::new(),
            calls: Calls::new(signals),
            sent: SentBody::default(),
            previous: SentBody::default(),
            turn: None,
            reply: None,
            last: Place::default(),
            reply_end_ms: 0,
        }
    }

    fn push(&mut self, kind: EntryKind, end_ms: Option<u64>) {
        self.entries.push(Entry::new(self.last, end_ms, kind));
    }

    fn fault(&mut self, name: &str, detail: String) {
        self.push(EntryKind::Fault { name: name.to_owned(), detail }, None);
    }

    /// Takes one line.
    fn line(&mut self, line: usize, record: Line) {
        let before_ms = self.last.at_ms;
        self.last = Place { at_ms: time_of(&record).unwrap_or(before_ms), line };
        let place = self.last;
        match record {
            Line::Session { .. } | Line::Log { .. } | Line::Attachment(_) => {}
            Line::Request { attempt, generation, body, .. } => {
                self.end_reply(None, false);
                self.request(before_ms, attempt, generation, body);
            }
            Line::Response { status, .. } => {
                self.reply = Some(ReplyReader::new(self.sent.api, self.sent.tool_names(), status));
                if let Some((_, turn)) = &mut self.turn {
                    turn.status = Some(status);
                    turn.response_ms = Some(place.at_ms);
                }
            }
            Line::Data { text, bytes, .. } => {
                if let Some(reply) = &mut self.reply {
                    let bytes = text.as_deref().map(str::as_bytes).or(bytes.as_deref());
                    reply.feed(bytes.unwrap_or_default(), place);
                }
            }
            Line::End { error, .. } => self.end_reply(error, true),
            Line::NoConnection { message, sent, .. } => {
                self.end_reply(None, false);
                self.fault(if sent { "connection_broken" } else { "connect_failed" }, message);
            }
            Line::ToolStarted { id, name, arguments, .. } => self.calls.started(place, &id, &name, arguments),
            Line::ToolFinished { id, name, result, attachments, error, .. } => {
                let result = error.map_or(Ok((result, attachments)), Err);
                self.calls.finished(place, &id, &name, result);
            }
            Line::Approval { id, name, answer, .. } => {
                self.calls.approval(place, &id, &name, &answer);
                // The approval was requested when the reply ended.
                let asked = Place { at_ms: self.reply_end_ms, line };
                let kind = EntryKind::Approval { id, name, answer: Some(answer) };
                self.entries.push(Entry::new(asked, Some(place.at_ms), kind));
            }
            Line::Reloaded { generation, detail, .. } => {
                self.push(EntryKind::Reloaded { generation, detail }, None);
            }
            Line::Stopped(Stopped { failure, .. }) => {
                self.end_reply(None, false);
                // The failure describes the fault of the reply, with more details.
                let is_fault = |entry: &Entry| matches!(entry.kind, EntryKind::Fault { .. });
                while failure.is_some() && self.entries.last().is_some_and(is_fault) {
                    self.entries.pop();
                }
                let canceled = || Failure::new(FailReason::Canceled, "", "");
                let Failure { reason, kind, detail } = failure.unwrap_or_else(canceled);
                let name = if kind.is_empty() { reason.to_string() } else { kind };
                self.fault(&name, detail);
            }
            Line::Finished { outcome, .. } => {
                self.end_reply(None, false);
                self.end_calls();
                self.failure(&outcome);
                self.entries.extend(self.calls.end(place));
                self.push(EntryKind::Finished, None);
            }
        }
    }

    fn request(&mut self, before_ms: u64, attempt: u32, generation: Option<u64>, body: Value) {
        self.end_calls();
        let Place { at_ms, line } = self.last;
        if attempt > 1 {
            let reason = self.entries.last().and_then(|entry| match &entry.kind {
                EntryKind::Fault { name, .. } => Some(format!("after {name}")),
                _ => None,
            });
            let kind = EntryKind::Retry { attempt, detail: reason.unwrap_or_default() };
            self.entries.push(Entry::new(Place { at_ms: before_ms, line }, Some(at_ms), kind));
        }
        // A repeated attempt is compared with the previous turn, too.
        if attempt <= 1 {
            self.previous = std::mem::take(&mut self.sent);
        }
        self.sent = SentBody::of(self.api, body);
        self.turn = Some((self.last, self.sent.turn(&self.previous, attempt, generation)));
    }

    /// Ends the current chat request, if there is one. `reports`: whether an incomplete reply is a fault.
    fn end_reply(&mut self, error: Option<String>, reports: bool) {
        let reply = self.reply.take().map(|reply| reply.finish(error, self.last));
        let Some((place, mut turn)) = self.turn.take() else { return };
        self.reply_end_ms = self.last.at_ms;
        let reply = reply.unwrap_or_default();
        let DecodedReply { entries, calls, faults, first_ms, finish_reason, usage } = reply;
        turn = TurnEntry { first_ms, finish_reason, usage, ..turn };
        self.entries.push(Entry::new(place, Some(self.last.at_ms), EntryKind::Turn(Box::new(turn))));
        self.entries.extend(entries);
        self.calls.begin(calls);
        for (name, detail) in faults.into_iter().filter(|_| reports) {
            self.fault(&name, detail);
        }
    }

    /// Adds the failure of an outcome, unless the last entry is its fault.
    fn failure(&mut self, outcome: &Value) {
        let text = |member: &str| outcome.get(member).and_then(Value::as_str);
        let is_known = matches!(self.entries.last(), Some(Entry { kind: EntryKind::Fault { .. }, .. }));
        if text("state") == Some("failed") && !is_known {
            let name = text("kind").or(text("fail_reason")).unwrap_or("failed");
            self.fault(name, text("detail").unwrap_or_default().to_owned());
        }
    }

    fn end_calls(&mut self) {
        let calls = self.calls.end_turn();
        self.entries.extend(calls);
    }

    /// Returns the entries in order. `is_cut`: the recording lacks the end of the request.
    fn finish(mut self, is_cut: bool) -> Vec<Entry> {
        self.end_reply(None, false);
        self.end_calls();
        if is_cut {
            let detail = "the recording ends before the end of the request";
            self.fault(RECORDING_CUT, detail.to_owned());
        }
        let mut entries = self.entries;
        entries.sort_by_key(|entry| entry.at_ms);
        number_turns(&mut entries);
        entries
    }
}

/// Returns the time of a line, if it has exactly one.
fn time_of(line: &Line) -> Option<u64> {
    match line {
        Line::Session { .. } | Line::Attachment(_) => None,
        Line::Stopped(Stopped { at_ms, .. })
        | Line::Request { at_ms, .. }
        | Line::Response { at_ms, .. }
        | Line::Data { at_ms, .. }
        | Line::End { at_ms, .. }
        | Line::NoConnection { at_ms, .. }
        | Line::ToolStarted { at_ms, .. }
        | Line::ToolFinished { at_ms, .. }
        | Line::Log { at_ms, .. }
        | Line::Approval { at_ms, .. }
        | Line::Reloaded { at_ms, .. }
        | Line::Finished { at_ms, .. } => Some(*at_ms),
    }
}
