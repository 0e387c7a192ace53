//! A recording → a timeline: its events, and its replies.

use deftool_chat::request::{Event, FailReason, Failure};
use deftool_chat::{Api, Message};
use serde_json::Value;

use super::builder::Builder;
use super::model::{Entry, EntryKind, Place, RequestTimeline, Timeline, TimelineSource};
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
    let mut timeline = RequestTimeline::of_session(&request.session);
    timeline.add_images(request.session.conversation.iter().flat_map(Message::attachments));
    let mut reader = Reader::new(request.session.api, timeline);
    let mut events = request.events.into_iter().peekable();
    for (number, line) in request.lines {
        while let Some(recorded) = events.next_if(|recorded| recorded.line < number) {
            reader.event(Place { at_ms: recorded.at_ms, line: recorded.line }, recorded.event);
        }
        reader.line(number, line);
    }
    for recorded in events {
        reader.event(Place { at_ms: recorded.at_ms, line: recorded.line }, recorded.event);
    }
    let mut timeline = reader.finish(is_cut);
    let mut logs = request.logs;
    for entry in &mut timeline.entries {
        if let EntryKind::Call(call) = &mut entry.kind {
            call.logs = logs.remove(&call.id).unwrap_or_default();
        }
    }
    timeline
}

/// The state while the lines of a request are read.
struct Reader {
    /// The API of the session.
    api: Api,
    builder: Builder,
    /// The body of the current chat request.
    sent: SentBody,
    /// The body of the last chat request of the previous turn.
    previous: SentBody,
    /// The index of the entry of the current chat request, until its reply has ended.
    turn: Option<usize>,
    reply: Option<ReplyReader>,
    /// The last line or event that was read.
    last: Place,
}

impl Reader {
    fn new(api: Api, timeline: RequestTimeline) -> Self {
        Self {
            api,
            builder: Builder::with_replies(timeline),
            sent: SentBody::default(),
            previous: SentBody::default(),
            turn: None,
            reply: None,
            last: Place::default(),
        }
    }

    fn entries(&mut self) -> &mut Vec<Entry> {
        &mut self.builder.request.entries
    }

    fn event(&mut self, place: Place, event: Event) {
        self.last = place;
        if let Event::Finished(_) = event {
            self.end_turn();
        }
        self.builder.event(place, event);
    }

    /// Takes a line other than an event.
    fn line(&mut self, line: usize, record: Line) {
        self.last = Place { at_ms: time_of(&record).unwrap_or(self.last.at_ms), line };
        let place = self.last;
        match record {
            Line::Session { .. } | Line::Event { .. } | Line::Log { .. } | Line::Attachment(_) => {}
            Line::Request { attempt, generation, body, .. } => {
                self.end_turn();
                self.request(attempt, generation, body);
            }
            Line::Response { status, .. } => {
                self.reply = Some(ReplyReader::new(self.sent.api, self.sent.tool_names(), status));
                let turn = self.turn.and_then(|index| self.entries().get_mut(index));
                if let Some(Entry { kind: EntryKind::Turn(turn), .. }) = turn {
                    turn.status = Some(status);
                    turn.response_ms = Some(place.at_ms);
                }
            }
            Line::Data { text, bytes, .. } => {
                if let Some(reply) = &mut self.reply {
                    let bytes = text.as_deref().map(str::as_bytes).or(bytes.as_deref());
                    reply.feed(bytes.unwrap_or_default(), place, &mut self.builder.request.entries);
                }
            }
            Line::End { error, .. } => self.end_reply(error, true),
            Line::NoConnection { message, sent, .. } => {
                self.end_reply(None, false);
                let name = if sent { "connection_broken" } else { "connect_failed" };
                self.builder.fault(place, name, message);
            }
            Line::Stopped(Stopped { failure, .. }) => {
                self.end_reply(None, false);
                // The failure describes the fault of the reply, with more details.
                let is_fault = |entry: &Entry| matches!(entry.kind, EntryKind::Fault { .. });
                while failure.is_some() && self.entries().last().is_some_and(is_fault) {
                    self.entries().pop();
                }
                let canceled = || Failure::new(FailReason::Canceled, "", "");
                let Failure { reason, kind, detail } = failure.unwrap_or_else(canceled);
                let name = if kind.is_empty() { reason.to_string() } else { kind };
                self.builder.fault(place, &name, detail);
            }
        }
    }

    fn request(&mut self, attempt: u32, generation: Option<u64>, body: Value) {
        self.builder.end_retry(self.last.at_ms);
        // A repeated attempt is compared with the previous turn, too.
        if attempt <= 1 {
            self.previous = std::mem::take(&mut self.sent);
        }
        self.sent = SentBody::of(self.api, body);
        let turn = self.sent.turn(&self.previous, attempt, generation);
        self.turn = Some(self.entries().len());
        self.builder.push(self.last, EntryKind::Turn(Box::new(turn)));
    }

    /// Ends the current chat request, if there is one. `reports`: whether an incomplete reply is a fault.
    fn end_reply(&mut self, error: Option<String>, reports: bool) {
        let place = self.last;
        let entries = &mut self.builder.request.entries;
        let reply = self.reply.take().map(|reply| reply.finish(error, place, entries));
        let DecodedReply { calls, faults, first_ms, finish_reason, usage } = reply.unwrap_or_default();
        let turn = self.turn.take().and_then(|index| entries.get_mut(index));
        let Some(Entry { kind: EntryKind::Turn(turn), end_ms, .. }) = turn else { return };
        *end_ms = Some(place.at_ms);
        (turn.first_ms, turn.finish_reason, turn.usage) = (first_ms, finish_reason, usage);
        self.builder.begin_calls(calls);
        for (name, detail) in faults.into_iter().filter(|_| reports) {
            self.builder.fault(place, &name, detail);
        }
    }

    /// Ends the current chat request and its calls.
    fn end_turn(&mut self) {
        self.end_reply(None, false);
        self.builder.end_calls();
    }

    /// `is_cut`: the recording lacks the end of the request.
    fn finish(mut self, is_cut: bool) -> RequestTimeline {
        self.end_turn();
        if is_cut {
            let detail = String::from("the recording ends before the end of the request");
            self.builder.fault(self.last, RECORDING_CUT, detail);
        }
        self.builder.finish()
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
        | Line::Event { at_ms, .. }
        | Line::Log { at_ms, .. } => Some(*at_ms),
    }
}
