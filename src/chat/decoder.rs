//! A reply's bytes → [`ChatEvent`]s, the last of which judges the whole.
//!
//! In: the body of an HTTP 200 answer in reads of any size, then how the transport ended. Out: text and reasoning as
//! they come (neighbours of one read are one event), progress, and exactly one [`ChatEvent::Ended`].
//!
//! Invariants: any split of the same bytes gives the same text, reasoning and reply; no input panics; text that came
//! is never taken back, whatever the verdict.
//!
//! What the body is, is sniffed from its first byte that is not blank, since content types lie: an event stream, a JSON
//! answer (a whole completion, or an error), or something else. `<think>` inside text is text here.
//!
//! An event that cannot be decoded and may have held a part of the reply is counted in [`Reply::lost_frames`]; comments
//! and keep-alives of plain words are not. Nothing that follows `[DONE]`, or the last event of a response, is read.
//!
//! [`Reply::lost_frames`]: super::Reply::lost_frames
//!
//! A reply of more than [`MAX_CALLS`](super::MAX_CALLS) calls or [`MAX_REPLY_BYTES`](super::MAX_REPLY_BYTES) ends there, as by an error of the server: what came
//! before stays, what follows is not read.
//!
//! The verdict, first match first:
//! 1. an error in the stream, the finish reason `error`, or a limit → `ServerError`;
//! 2. the connection broke before a finish reason or `[DONE]` → `Incomplete`;
//! 3. a call's arguments end in the middle → `CallTruncated`;
//! 4. no choice ever came → `Empty`;
//! 5. a finish reason, `[DONE]`, or calls that are all whole → `Complete`;
//! 6. otherwise the end was never said → `Incomplete`.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::Api;
use super::account::{Account, Ending, Seen, own_error};
use super::assemble::Assembled;
use super::completion::Completion;
use super::event::{ChatEvent, ServerError};
use super::http_error::{MAX_MESSAGE_BYTES, classify_stream_error, text_of_body};
use super::repair::{Repaired, repair_json};
use super::responses::Response;
use super::sink::Sink;
use super::sse::{EventTooLarge, Frame, FrameKind, MAX_EVENT_BYTES, SseParser};

/// How the transport ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The body came to its end.
    Clean,
    /// The connection broke, or was closed before the end.
    Broken {
        /// The transport's error.
        error: String,
    },
}

/// What helps to word a reply that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamNotes {
    /// The start of a body in which nothing was recognised: an HTML page's title, or up to 2 KiB of text.
    pub body_start: Option<String>,
    /// The transport's error, if it broke.
    pub transport_error: Option<String>,
    /// Calls that the server sent twice: the same id, name and arguments. They count once.
    pub repeated_calls: usize,
    /// What the reply held beside text, reasoning and calls of functions, such as `web_search_call`: it was passed over.
    pub foreign_items: Vec<String>,
}

/// Decodes one reply.
#[derive(Debug)]
pub struct StreamDecoder {
    body: Body,
    reply: OpenReply,
}

/// What the body turned out to be.
#[derive(Debug)]
enum Body {
    /// Nothing but blanks so far.
    Unknown(Blanks),
    Events(SseParser),
    /// Kept whole; it is read at its end.
    Json(Vec<u8>),
    /// Nothing that is read: HTML, or what follows an event that is too large.
    Ignored,
}

/// The reply so far.
#[derive(Debug)]
struct OpenReply {
    account: Account,
    reading: Reading,
    body_start: Vec<u8>,
    /// Events that could not be decoded and may have held a part of the reply.
    lost_frames: usize,
    /// An event that ends with half a surrogate pair. The next event may begin with the other half.
    half: Option<Repaired>,
}

/// What the JSON of an event means.
#[derive(Debug)]
enum Reading {
    Completion(Completion),
    Response(Response),
}

impl StreamDecoder {
    /// For the reply to a request that went to `api` and offered the tools `known_tools`.
    pub fn new(api: Api, known_tools: impl IntoIterator<Item = String>) -> Self {
        let reading = match api {
            Api::ChatCompletions => Reading::Completion(Completion::new(known_tools)),
            Api::Responses => Reading::Response(Response::default()),
        };
        let account = Account::default();
        Self {
            body: Body::Unknown(Blanks::default()),
            reply: OpenReply { account, reading, body_start: Vec::new(), lost_frames: 0, half: None },
        }
    }

    /// Takes one read and adds what it says to `events`.
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

    /// Whether nothing that may still come can change the reply: the server said `[DONE]`, or reported an error.
    pub fn is_done(&self) -> bool {
        self.reply.account.ending != Ending::Open || self.reply.account.has_error()
    }

    /// The error that the server reported in the stream, if it did so far.
    pub fn error(&self) -> Option<&ServerError> {
        self.reply.account.error()
    }

    /// Whether the server gave a finish reason: all that may follow are token counts and `[DONE]`.
    pub fn has_finish_reason(&self) -> bool {
        self.reply.account.finish_reason.is_some()
    }

    /// The transport ended: adds what was still held back and one [`ChatEvent::Ended`].
    pub fn finish(mut self, end: End, events: &mut Vec<ChatEvent>) -> StreamNotes {
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
            End::Clean => None,
            End::Broken { error } => Some(error),
        };
        let body_start = (!self.reply.account.is_recognised() && !self.reply.body_start.is_empty())
            .then(|| text_of_body(&self.reply.body_start));
        let OpenReply { account, reading, lost_frames, .. } = self.reply;
        let (assembled, foreign_items) = reading.finish(account.is_whole());
        let repeated_calls = assembled.repeated;
        // A body in which nothing was recognised is not a damaged reply.
        let lost_frames = if account.is_recognised() { lost_frames } else { 0 };
        let reply = account.judge(assembled, lost_frames, transport_error.clone());
        events.push(ChatEvent::Ended { reply });
        StreamNotes { body_start, transport_error, repeated_calls, foreign_items }
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

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The blanks that a body begins with, as far as they mean anything: a body may send them for ever.
#[derive(Debug, Default)]
struct Blanks {
    /// Bytes of a byte order mark that have come; it is first, or there is none.
    mark: usize,
    /// Something came after the mark, or there is none.
    past_mark: bool,
    /// A line has ended.
    has_line: bool,
    /// There are blanks on the last line.
    is_indented: bool,
}

impl Blanks {
    /// Takes one read; what the body is and the rest of the read, or `None` while there was nothing but blanks.
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
            // Plain text has no fields that mean anything, so that the parser finds nothing in it.
            _ => Body::Events(SseParser::default()),
        };
        Some((body, text))
    }

    /// Blanks that mean the same.
    fn as_bytes(&self) -> Vec<u8> {
        let mark = BYTE_ORDER_MARK.get(..self.mark).unwrap_or_default();
        let line: &[u8] = if self.has_line { b"\n" } else { b"" };
        let indent: &[u8] = if self.is_indented { b" " } else { b"" };
        [mark, line, indent].concat()
    }
}

impl Reading {
    /// Takes the JSON of one event.
    fn read(&mut self, data: &[u8], account: &mut Account, sink: &mut Sink<'_>) -> serde_json::Result<()> {
        match self {
            Self::Completion(completion) => completion.read(data, account, sink),
            Self::Response(response) => response.read(data, account, sink),
        }
    }

    /// The calls, and the kinds of items that were passed over.
    fn finish(self, empty_is_whole: bool) -> (Assembled, Vec<String>) {
        match self {
            Self::Completion(completion) => completion.finish(empty_is_whole),
            Self::Response(response) => response.finish(empty_is_whole),
        }
    }
}

impl OpenReply {
    fn on_frame(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) {
        match frame.kind {
            _ if self.is_over() => {}
            FrameKind::Error => self.account.set_error(|| classify_stream_error(frame.data)),
            FrameKind::Data => self.on_data(frame.data, sink),
            FrameKind::UnknownField => self.lose(frame.data),
        }
    }

    /// Whether nothing that follows is read.
    fn is_over(&self) -> bool {
        self.account.is_full() || self.account.ending != Ending::Open
    }

    fn on_data(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        if self.half.is_none() && self.reading.read(data, &mut self.account, sink).is_ok() {
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

    /// Reads the event that was held back for the other half of a character. If no event follows that could hold it, the half
    /// is dropped: the stream was cut inside a character.
    fn release_half(&mut self, is_followed: bool, sink: &mut Sink<'_>) {
        if let Some(before) = self.half.take() {
            let text = if is_followed { before.text } else { before.without_half() };
            self.on_lines(text.as_bytes(), sink);
        }
    }

    /// One JSON value, or lines of values: events that a server did not separate by blank lines.
    fn on_lines(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        if self.reading.read(data, &mut self.account, sink).is_ok() {
            return;
        }
        for line in data.split(|&byte| byte == b'\n') {
            self.on_line(line, sink);
        }
    }

    /// Any number of JSON values, the last of which may be `[DONE]`.
    fn on_line(&mut self, line: &[u8], sink: &mut Sink<'_>) {
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
        while !self.is_over() {
            let start = values.byte_offset();
            let found = values.next();
            let value = line.get(start..values.byte_offset()).unwrap_or_default();
            match found {
                Some(Ok(_)) if self.reading.read(value, &mut self.account, sink).is_ok() => {}
                Some(_) => return self.on_broken(line.get(start..).unwrap_or_default()),
                None => return,
            }
        }
    }

    /// Takes data that is not JSON: `[DONE]`, or a lost event.
    fn on_broken(&mut self, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.account.ending = Ending::Done;
        } else {
            self.lose(data);
        }
    }

    /// Counts an event that could not be decoded, unless it cannot have held a part of the reply.
    fn lose(&mut self, data: &[u8]) {
        if !is_keep_alive(data.trim_ascii()) {
            self.lost_frames += 1;
        }
    }

    /// A body that is JSON: a whole reply, an error, or chunks one after another without SSE around them.
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
                    self.account.ending = Ending::Cut("the body ends in the middle of a JSON value");
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
        // A message is whole by being JSON; chunks without SSE around them still have to say that they are over.
        if self.account.seen == Seen::Message && self.account.ending == Ending::Open {
            self.account.ending = Ending::Done;
        }
    }

    fn on_json_value(&mut self, value: &[u8], sink: &mut Sink<'_>) {
        let seen_before = self.account.seen;
        if value.trim_ascii_start().starts_with(b"[") {
            // Gemini sends its errors in a list.
            if let Ok(items) = serde_json::from_slice::<Vec<Value>>(value) {
                for item in items {
                    if self.is_over() {
                        break;
                    }
                    self.on_data(item.to_string().as_bytes(), sink);
                }
            }
            return;
        }
        self.on_data(value, sink);
        if self.account.seen == seen_before
            && !self.account.has_error()
            && let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(value)
            && ["detail", "message"].iter().any(|name| members.contains_key(*name))
        {
            self.account.set_error(|| classify_stream_error(value));
        }
    }

    fn on_too_large(&mut self, error: EventTooLarge) {
        self.account.set_error(|| own_error(error.to_string()));
    }

    fn keep_body_start(&mut self, bytes: &[u8]) {
        let room = MAX_MESSAGE_BYTES.saturating_sub(self.body_start.len());
        if room > 0 && !self.account.is_recognised() {
            self.body_start.extend(bytes.iter().take(room));
        }
    }
}

/// Whether data that is not JSON cannot have held a part of a reply: a few plain words, such as `ping`.
fn is_keep_alive(data: &[u8]) -> bool {
    const MAX_BYTES: usize = 64;
    data.len() <= MAX_BYTES
        && data.iter().all(|byte| matches!(byte, 0 | b' '..=b'~') && !b"\"'\\{}[]<>".contains(byte))
}
