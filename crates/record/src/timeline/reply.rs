//! The recorded bytes of one reply → its text, calls and measurements.

use std::collections::HashMap;

use deftool_chat::{
    Api, ChatEvent, RawArguments, Reply, ReplyStatus, ServerError, StreamDecoder, Tables, TransportEnd,
    Usage, classify_http_error,
};
use deftool_lang::schema::before_control_token;
use serde_json::Value;

use super::model::{Entry, EntryKind, Place, Stream, push_delta};

/// Maximum size of an error body that is kept for its message, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;

/// A call as the model wrote it.
#[derive(Debug)]
pub(super) struct WrittenCall {
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) arguments_error: Option<String>,
    /// Where the call begins.
    pub(super) place: Place,
    /// When the model finished writing the call.
    pub(super) end_ms: u64,
}

/// A decoded reply.
#[derive(Debug, Default)]
pub(super) struct DecodedReply {
    pub(super) calls: Vec<WrittenCall>,
    /// Names and details of the faults.
    pub(super) faults: Vec<(String, String)>,
    /// When the first reasoning, text or call arrived.
    pub(super) first_ms: Option<u64>,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// A reader of one reply.
#[derive(Debug)]
pub(super) struct ReplyReader {
    status: u16,
    /// The names of the offered tools.
    known_tools: Vec<String>,
    decoder: StreamDecoder,
    /// The start of the body of an HTTP error.
    error_body: Vec<u8>,
    events: Vec<ChatEvent>,
    /// Where the call of each index begins.
    starts: HashMap<usize, Place>,
    /// The last time of a call's delta.
    call_end_ms: u64,
    reply: Option<Reply>,
    decoded: DecodedReply,
}

impl ReplyReader {
    pub(super) fn new(api: Api, known_tools: Vec<String>, status: u16) -> Self {
        Self {
            status,
            decoder: StreamDecoder::new(api, known_tools.clone()),
            known_tools,
            error_body: Vec::new(),
            events: Vec::new(),
            starts: HashMap::new(),
            call_end_ms: 0,
            reply: None,
            decoded: DecodedReply::default(),
        }
    }

    /// Whether the answer has an HTTP status other than 2xx.
    fn is_error(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    /// Takes one read of the body, and appends its text to `entries`.
    pub(super) fn feed(&mut self, bytes: &[u8], place: Place, entries: &mut Vec<Entry>) {
        if self.is_error() {
            let room = MAX_ERROR_BODY.saturating_sub(self.error_body.len());
            self.error_body.extend(bytes.iter().take(room));
            return;
        }
        self.decoder.feed(bytes, &mut self.events);
        self.take_events(place, entries);
    }

    /// Takes the end of the body.
    pub(super) fn finish(
        mut self,
        error: Option<String>,
        place: Place,
        entries: &mut Vec<Entry>,
    ) -> DecodedReply {
        if self.is_error() {
            let error_report = classify_http_error(Tables::default(), self.status, &self.error_body);
            self.push_failed_generation(&error_report, place, entries);
            self.decoded.faults.push((format!("http_{}", self.status), error_report.message));
            self.decoded.faults.extend(error.map(|error| (String::from("connection_broken"), error)));
            return self.decoded;
        }
        let decoder =
            std::mem::replace(&mut self.decoder, StreamDecoder::new(Api::ChatCompletions, Vec::new()));
        let end = error.map_or(TransportEnd::Clean, |error| TransportEnd::Broken { error });
        decoder.finish(end, &mut self.events);
        self.take_events(place, entries);
        if let Some(Reply { status: ReplyStatus::ServerError { error }, .. }) = &self.reply {
            let error = error.clone();
            self.push_failed_generation(&error, place, entries);
        }
        let Self { reply, starts, call_end_ms, mut decoded, known_tools, .. } = self;
        let Some(Reply { status, calls, lost_frames, finish_reason, usage, .. }) = reply else {
            return decoded;
        };
        for call in calls {
            let index = call.index;
            let place = starts.get(&index).copied().unwrap_or(place);
            // The next call begins where this one ends.
            let end_ms = starts.get(&(index + 1)).map_or(call_end_ms, |next| next.at_ms).max(place.at_ms);
            let (arguments, arguments_error) = match call.arguments {
                RawArguments::Object { value } => (value.to_value(), None),
                RawArguments::Malformed { text, error, .. } => (Value::String(text), Some(error)),
            };
            let before = before_control_token(&call.name);
            let name = before.filter(|name| known_tools.iter().any(|known| known == name));
            let name = name.map_or(call.name.clone(), str::to_owned);
            decoded.calls.push(WrittenCall { name, arguments, arguments_error, place, end_ms });
        }
        if lost_frames > 0 {
            let detail = format!("{lost_frames} events of the stream could not be decoded");
            decoded.faults.push((String::from("lost_frame"), detail));
        }
        decoded.faults.extend(fault_of(status));
        DecodedReply { finish_reason, usage, ..decoded }
    }

    fn take_events(&mut self, place: Place, entries: &mut Vec<Entry>) {
        let at_ms = place.at_ms;
        for event in std::mem::take(&mut self.events) {
            match event {
                ChatEvent::Text { text } => self.push(EntryKind::Text, &text, place, entries),
                ChatEvent::Reasoning { text } => self.push(EntryKind::Reasoning, &text, place, entries),
                ChatEvent::ToolCallDelta { index, .. } => {
                    self.decoded.first_ms.get_or_insert(at_ms);
                    self.starts.entry(index).or_insert(place);
                    self.call_end_ms = at_ms;
                }
                ChatEvent::Progress { .. } => {}
                ChatEvent::Ended { reply } => self.reply = Some(reply),
            }
        }
    }

    /// Appends the text of a call that the server could not parse, which counts as text of the model.
    fn push_failed_generation(&mut self, error: &ServerError, place: Place, entries: &mut Vec<Entry>) {
        if let Some(text) = &error.failed_generation {
            self.push(EntryKind::Text, text, place, entries);
        }
    }

    /// Appends a delta.
    fn push(&mut self, kind: fn(Stream) -> EntryKind, text: &str, place: Place, entries: &mut Vec<Entry>) {
        self.decoded.first_ms.get_or_insert(place.at_ms);
        push_delta(entries, kind, text, place);
    }
}

/// Returns the name and the details of an incomplete reply.
fn fault_of(status: ReplyStatus) -> Option<(String, String)> {
    let (name, detail) = match status {
        ReplyStatus::Complete => return None,
        ReplyStatus::CallTruncated { .. } => {
            ("call_truncated", String::from("the reply ended inside the arguments of a call"))
        }
        ReplyStatus::ServerError { error } => ("server_error", error.message),
        ReplyStatus::Incomplete { cause } => {
            let stopped = || String::from("the reply stopped before the server reported its end");
            ("incomplete_reply", cause.unwrap_or_else(stopped))
        }
        ReplyStatus::Empty => ("empty_reply", String::from("the reply contains neither text nor calls")),
    };
    Some((name.to_owned(), detail))
}
