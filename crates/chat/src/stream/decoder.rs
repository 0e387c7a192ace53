//! The bytes of a reply → [`ChatEvent`]s. The last event contains the reply's status.
//!
//! In: the body of an HTTP 200 answer in reads of any size, then the end of the transport. Out: text and reasoning as
//! they arrive (merged within one read), progress, and exactly one [`ChatEvent::Ended`].
//!
//! Invariants: any split of the same bytes produces the same text, reasoning and reply; no input panics; emitted text
//! is never retracted, regardless of the status.
//!
//! Content types are unreliable, so the first non-blank byte determines the kind of the body: an event stream, a JSON
//! answer (a complete completion, or an error), or other data. `<think>` inside text is not parsed here.
//!
//! An event that cannot be decoded and may have contained a part of the reply is counted in [`Reply::lost_frames`].
//! Comments and plain-text keep-alives are not counted. Nothing after `[DONE]` or after the final event of a response
//! is read.
//!
//! [`Reply::lost_frames`]: crate::Reply::lost_frames
//!
//! A reply with more than [`MAX_CALLS`](crate::MAX_CALLS) calls or `MAX_REPLY_BYTES` ends
//! there with a server error: earlier content is kept, the rest is not read.
//!
//! The status is the first that matches:
//! 1. an error in the stream, a finish reason that reports a failure, or an exceeded limit → `ServerError`;
//! 2. the connection broke before a finish reason or `[DONE]` → `Incomplete`;
//! 3. the arguments of a call are cut off → `CallTruncated`;
//! 4. no choice was received → `Empty`;
//! 5. a finish reason, `[DONE]`, or the API's final event → `Complete`;
//! 6. otherwise the end was not reported → `Incomplete`.

use deftool_lang::spec::Api;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::api_decoder::ApiDecoder;
use super::chunk::decode_chunk;
use super::completion::Completion;
use super::http_error::{MAX_MESSAGE_BYTES, text_of_body};
use super::messages::MessageReply;
use super::repair::{Repaired, repair_json};
use super::reply_state::{BodyEnd, ReplyContent, ReplyState, local_error};
use super::responses::Response;
use super::sink::Sink;
use super::sse::{EventTooLarge, Frame, FrameKind, MAX_EVENT_BYTES, SseParser};
use crate::dialect::Tables;
use crate::event::ChatEvent;

/// The end of the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportEnd {
    /// The body ended regularly.
    Clean,
    /// The connection broke, or was closed early.
    Broken {
        /// The transport's error.
        error: String,
    },
}

/// Details for the message about a failed reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamNotes {
    /// The start of an unrecognised body: the title of an HTML page, or up to 2 KiB of text.
    pub body_start: Option<String>,
    /// The API whose reply an unrecognised body seems to be.
    pub other_api: Option<Api>,
    /// The transport's error, if the connection broke.
    pub transport_error: Option<String>,
    /// Number of calls that the server repeated with the same id, name and arguments. They count once.
    pub repeated_calls: usize,
    /// The id that the server gave the reply.
    pub id: Option<String>,
    /// Kinds of items other than text, reasoning and function calls that were skipped, such as `web_search_call`.
    pub foreign_items: Vec<String>,
    /// The parts that only the server can read are larger than 4 MiB, and were dropped.
    pub opaque_is_too_large: bool,
}

/// A decoder for one reply.
#[derive(Debug)]
pub struct StreamDecoder {
    api: Api,
    body: Body,
    reply: PartialReply,
}

/// The detected kind of the body.
#[derive(Debug)]
enum Body {
    /// Only blanks so far.
    Unknown(LeadingBlanks),
    Events(SseParser),
    /// The body so far. It is parsed at its end.
    Json(Vec<u8>),
    /// Data that is not read: HTML, or the rest after an event that is too large.
    Ignored,
}

/// The reply so far.
#[derive(Debug)]
struct PartialReply {
    state: ReplyState,
    api_decoder: Box<dyn ApiDecoder>,
    body_start: Vec<u8>,
    /// Number of events that could not be decoded and may have contained a part of the reply.
    lost_frames: usize,
    /// An event that ends with half a surrogate pair. The next event may begin with the other half.
    half: Option<Repaired>,
}

impl StreamDecoder {
    /// Creates a decoder for the reply to a request to `api` that offered the tools `known_tools`.
    pub fn new(api: Api, known_tools: impl IntoIterator<Item = String>) -> Self {
        let api_decoder: Box<dyn ApiDecoder> = match api {
            Api::ChatCompletions => Box::new(Completion::new(known_tools)),
            Api::Responses => Box::<Response>::default(),
            Api::Messages => Box::<MessageReply>::default(),
        };
        let state = ReplyState::default();
        Self {
            api,
            body: Body::Unknown(LeadingBlanks::default()),
            reply: PartialReply { state, api_decoder, body_start: Vec::new(), lost_frames: 0, half: None },
        }
    }

    /// Explains errors and finish reasons by `tables`. Called before the first read.
    #[must_use]
    pub fn with_tables(mut self, tables: Tables) -> Self {
        self.reply.state = ReplyState::new(tables);
        self
    }

    /// Takes one read and appends its events to `events`.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<ChatEvent>) {
        let mut sink = Sink::new(events);
        self.reply.keep_body_start(bytes);
        if let Body::Unknown(blanks) = &mut self.body {
            let Some((body, rest)) = blanks.sniff(bytes) else { return };
            let before = blanks.as_bytes();
            self.body = body;
            self.consume(&before, &mut sink);
            self.consume(rest, &mut sink);
            return;
        }
        self.consume(bytes, &mut sink);
    }

    /// Returns the bytes that the next event is compared with. A caller may load them into the cache early.
    pub fn expected(&self) -> &[u8] {
        self.reply.api_decoder.expected()
    }

    /// Whether further data cannot change the reply: the server sent `[DONE]`, or reported an error.
    pub fn is_done(&self) -> bool {
        self.reply.state.body_end != BodyEnd::Open || self.reply.state.has_error()
    }

    /// Whether the server sent a finish reason. Only token counts and `[DONE]` may follow.
    pub fn has_finish_reason(&self) -> bool {
        self.reply.state.finish_reason.is_some()
    }

    /// Takes the end of the transport. Appends data that was held back, then one [`ChatEvent::Ended`].
    pub fn finish(mut self, end: TransportEnd, events: &mut Vec<ChatEvent>) -> StreamNotes {
        let mut sink = Sink::new(events);
        match self.body {
            Body::Events(parser) => {
                let outcome = parser.finish(&mut |frame| self.reply.on_frame(frame, &mut sink));
                if let Err(error) = outcome {
                    self.reply.on_too_large(error);
                }
            }
            Body::Json(body) => self.reply.on_json_body(&body, &mut sink),
            Body::Unknown(_) | Body::Ignored => {}
        }
        self.reply.release_half(false, &mut sink);
        let transport_error = match end {
            TransportEnd::Clean => None,
            TransportEnd::Broken { error } => Some(error),
        };
        let body_start = (!self.reply.state.is_recognised() && !self.reply.body_start.is_empty())
            .then(|| text_of_body(&self.reply.body_start));
        let other_api = body_start.as_deref().and_then(api_of).filter(|api| *api != self.api);
        let PartialReply { mut state, api_decoder, lost_frames, .. } = self.reply;
        let id = state.id.take();
        let (mut assembled, foreign_items, opaque) = api_decoder.finish(state.is_complete());
        let repeated_calls = assembled.repeated;
        // An unrecognised body is not a damaged reply.
        let lost_frames = if state.is_recognised() { lost_frames } else { 0 };
        let opaque_is_too_large = opaque.is_none();
        if opaque_is_too_large {
            assembled.calls.iter_mut().for_each(|call| call.opaque.clear());
        }
        let mut reply = state.into_reply(assembled, lost_frames, transport_error.clone());
        reply.opaque = Box::new(opaque.unwrap_or_default());
        events.push(ChatEvent::Ended { reply });
        StreamNotes {
            body_start,
            other_api,
            transport_error,
            repeated_calls,
            id,
            foreign_items,
            opaque_is_too_large,
        }
    }

    fn consume(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        match &mut self.body {
            Body::Events(parser) => {
                if let Err(error) = parser.feed(bytes, &mut |frame| self.reply.on_frame(frame, sink)) {
                    self.reply.on_too_large(error);
                    self.body = Body::Ignored;
                }
            }
            Body::Json(body) => {
                if body.len() + bytes.len() > MAX_EVENT_BYTES {
                    self.reply.on_too_large(EventTooLarge { limit: MAX_EVENT_BYTES });
                    self.body = Body::Ignored;
                } else {
                    body.extend_from_slice(bytes);
                }
            }
            Body::Unknown(_) | Body::Ignored => {}
        }
    }
}

/// Returns the API whose replies begin like this.
fn api_of(body_start: &str) -> Option<Api> {
    let text = body_start.replace(' ', "");
    let begins = |api: &Api| {
        let marks: &[&str] = match api {
            Api::ChatCompletions => &["\"choices\":["],
            Api::Responses => &["\"type\":\"response.", "\"object\":\"response\""],
            Api::Messages => &["\"type\":\"message_start\"", "\"type\":\"message\",\"role\""],
        };
        marks.iter().any(|mark| text.contains(mark))
    };
    Api::ALL.into_iter().find(begins)
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A summary of the blanks at the start of a body, in constant memory: a body may be an endless sequence of blanks.
#[derive(Debug, Default)]
struct LeadingBlanks {
    /// Number of bytes of the byte order mark that were received. The mark is only recognised at the start.
    mark: usize,
    /// Data followed the mark, or there is no mark.
    past_mark: bool,
    /// A line ended.
    has_line: bool,
    /// The last line contains blanks.
    is_indented: bool,
}

impl LeadingBlanks {
    /// Takes one read. Returns the kind of the body and the rest of the read, or `None` if all bytes so far are blank.
    fn sniff<'a>(&mut self, bytes: &'a [u8]) -> Option<(Body, &'a [u8])> {
        let mut rest = bytes;
        while !self.past_mark && self.mark < BYTE_ORDER_MARK.len() {
            let (first, after) = rest.split_first()?;
            if BYTE_ORDER_MARK.get(self.mark) == Some(first) {
                self.mark += 1;
                rest = after;
            } else {
                self.past_mark = true;
            }
        }
        if matches!(self.mark, 1 | 2) {
            return Some((Body::Events(SseParser::default()), rest));
        }
        self.past_mark = true;
        let text = rest.trim_ascii_start();
        let blanks = rest.get(..rest.len() - text.len()).unwrap_or_default();
        let last_line = match memchr::memrchr2(b'\n', b'\r', blanks) {
            Some(end) => {
                self.has_line = true;
                self.is_indented = false;
                blanks.get(end + 1..).unwrap_or_default()
            }
            None => blanks,
        };
        self.is_indented |= !last_line.is_empty();
        let body = match text.first()? {
            b'{' | b'[' => Body::Json(Vec::new()),
            b'<' => Body::Ignored,
            // The parser finds no fields in plain text.
            _ => Body::Events(SseParser::default()),
        };
        Some((body, text))
    }

    /// Returns blanks that are equivalent to the received ones.
    fn as_bytes(&self) -> Vec<u8> {
        let mark = BYTE_ORDER_MARK.get(..self.mark).unwrap_or_default();
        let line: &[u8] = if self.has_line { b"\n" } else { b"" };
        let indent: &[u8] = if self.is_indented { b" " } else { b"" };
        [mark, line, indent].concat()
    }
}

impl PartialReply {
    fn on_frame(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) {
        match frame.kind {
            _ if self.is_over() => {}
            FrameKind::Error => self.state.set_server_error(frame.data),
            FrameKind::Data => self.on_data(frame.data, sink),
            FrameKind::UnknownField if is_error_json(frame.data) => {
                self.state.set_server_error(frame.data);
            }
            FrameKind::UnknownField => self.count_lost(frame.data),
        }
    }

    /// Whether the rest of the body is skipped.
    fn is_over(&self) -> bool {
        self.state.is_full() || self.state.body_end != BodyEnd::Open
    }

    fn on_data(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        if data.starts_with(b"[")
            && let Ok(items) = serde_json::from_slice::<Vec<Value>>(data)
        {
            return self.on_list(&items, sink);
        }
        if self.half.is_none() && self.api_decoder.read(data, &mut self.state, sink).is_ok() {
            return;
        }
        if is_keep_alive(data.trim_ascii()) {
            return;
        }
        let mut repaired = repair_json(data);
        if let (Some(before), Some(after)) = (&mut self.half, &mut repaired) {
            before.join(after);
        }
        self.release_half(serde_json::from_slice::<IgnoredAny>(data).is_ok(), sink);
        match repaired {
            Some(repaired) if repaired.ends_with_half() => self.half = Some(repaired),
            Some(repaired) => self.on_lines(repaired.text.as_bytes(), sink),
            None => self.on_lines(data, sink),
        }
    }

    /// Takes a list of values. Gemini sends its errors in a list.
    fn on_list(&mut self, items: &[Value], sink: &mut Sink<'_>) {
        for item in items.iter().filter(|item| item.is_object()) {
            if !self.is_over() {
                self.on_data(item.to_string().as_bytes(), sink);
            }
        }
    }

    /// Parses the event that was held back for the other half of a character. If no event follows that could contain
    /// it, drops the half: the stream was cut inside a character.
    fn release_half(&mut self, is_followed: bool, sink: &mut Sink<'_>) {
        if let Some(before) = self.half.take() {
            let text = if is_followed { before.text } else { before.without_half() };
            self.on_lines(text.as_bytes(), sink);
        }
    }

    /// Takes one JSON value, or lines of values: events that a server did not separate by blank lines.
    fn on_lines(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        if self.api_decoder.read(data, &mut self.state, sink).is_ok() {
            return;
        }
        for line in data.split(|&byte| byte == b'\n') {
            self.on_line(line, sink);
        }
    }

    /// Takes any number of JSON values. The last one may be `[DONE]`.
    fn on_line(&mut self, line: &[u8], sink: &mut Sink<'_>) {
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
        while !self.is_over() {
            let start = values.byte_offset();
            let found = values.next();
            let value = line.get(start..values.byte_offset()).unwrap_or_default();
            match found {
                Some(Ok(_)) if self.api_decoder.read(value, &mut self.state, sink).is_ok() => {}
                Some(_) => return self.on_broken(line.get(start..).unwrap_or_default()),
                None => return,
            }
        }
    }

    /// Takes data that is not JSON: `[DONE]`, or a lost event.
    fn on_broken(&mut self, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.state.body_end = BodyEnd::Done;
        } else {
            self.count_lost(data);
        }
    }

    /// Counts an event that could not be decoded, unless it is a keep-alive.
    fn count_lost(&mut self, data: &[u8]) {
        if !is_keep_alive(data.trim_ascii()) {
            self.lost_frames += 1;
        }
    }

    /// Takes a JSON body: a complete reply, an error, or a sequence of chunks without SSE.
    fn on_json_body(&mut self, body: &[u8], sink: &mut Sink<'_>) {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        let mut values = serde_json::Deserializer::from_slice(body).into_iter::<IgnoredAny>();
        while !self.is_over() {
            let start = values.byte_offset();
            let found = values.next();
            let value = body.get(start..values.byte_offset()).unwrap_or_default();
            match found {
                Some(Ok(_)) => self.on_json_value(value, sink),
                Some(Err(error)) if error.is_eof() => {
                    self.state.body_end = BodyEnd::Cut("the body ends in the middle of a JSON value");
                    return;
                }
                Some(Err(_)) => {
                    let rest = body.get(start..).unwrap_or_default();
                    match repair_json(rest) {
                        Some(repaired) => return self.on_json_body(repaired.text.as_bytes(), sink),
                        None => self.on_broken(rest),
                    }
                    break;
                }
                None => break,
            }
        }
        self.release_half(false, sink);
        // A complete message needs no end marker. Chunks without SSE do.
        if self.state.content == ReplyContent::Message && self.state.body_end == BodyEnd::Open {
            self.state.body_end = BodyEnd::Done;
        }
    }

    fn on_json_value(&mut self, value: &[u8], sink: &mut Sink<'_>) {
        let content_before = self.state.content;
        self.on_data(value.trim_ascii_start(), sink);
        if self.state.content == content_before
            && !self.state.has_error()
            && let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(value)
            && ["detail", "message"].iter().any(|name| members.contains_key(*name))
        {
            self.state.set_server_error(value);
        }
    }

    fn on_too_large(&mut self, error: EventTooLarge) {
        self.state.set_error(|| local_error(error.to_string()));
    }

    fn keep_body_start(&mut self, bytes: &[u8]) {
        let room = MAX_MESSAGE_BYTES.saturating_sub(self.body_start.len());
        if room > 0 && !self.state.is_recognised() {
            self.body_start.extend(bytes.iter().take(room));
        }
    }
}

/// Whether a line is the JSON of an error. Some servers write an error into an event stream without `data:`.
fn is_error_json(line: &[u8]) -> bool {
    line.starts_with(b"{") && decode_chunk(line).is_ok_and(|chunk| chunk.has_error())
}

/// Whether data that is not JSON is a keep-alive, such as `ping`: a few plain words that cannot be a part of a reply.
fn is_keep_alive(data: &[u8]) -> bool {
    const MAX_BYTES: usize = 64;
    data.len() <= MAX_BYTES
        && data.iter().all(|byte| matches!(byte, 0 | b' '..=b'~') && !b"\"'\\{}[]<>".contains(byte))
}
