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
//! A reply of more than [`MAX_CALLS`] calls or [`MAX_REPLY_BYTES`] ends there, as by an error of the server: what came
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

use super::assemble::{Assembler, MAX_CALLS, TooMuch};
use super::chunk::{Choice, Chunk, Delta, decode_chunk};
use super::event::{ChatEvent, Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
use super::http_error::{MAX_MESSAGE_BYTES, classify_stream_error, text_of_body};
use super::loose::Loose;
use super::repair::repair_json;
use super::sink::Sink;
use super::sse::{EventTooLarge, Frame, FrameKind, MAX_EVENT_BYTES, SseParser};

/// Most bytes that the text, the reasoning and the calls of one reply may have together.
pub const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

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
    /// Events that were not JSON and were passed over.
    pub skipped_frames: usize,
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

/// What the body itself said of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Ending {
    #[default]
    Open,
    /// `[DONE]`, or a JSON body that is whole.
    Done,
    /// A JSON body that stops in the middle.
    Cut,
}

/// The most that a choice brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Seen {
    /// There was no choice yet.
    #[default]
    Nothing,
    /// A choice, with a delta as a rule.
    Choice,
    /// A whole message.
    Message,
}

/// The reply so far.
#[derive(Debug, Default)]
struct OpenReply {
    assembler: Assembler,
    error: Option<ServerError>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    ending: Ending,
    seen: Seen,
    has_text: bool,
    /// Bytes of text, reasoning and calls.
    size: usize,
    /// A limit was passed: nothing that follows is read.
    is_full: bool,
    body_start: Vec<u8>,
    skipped_frames: usize,
}

impl StreamDecoder {
    /// For the reply to a request that offered the tools `known_tools`.
    pub fn new(known_tools: impl IntoIterator<Item = String>) -> Self {
        let assembler = Assembler::new(known_tools);
        Self {
            body: Body::Unknown(Blanks::default()),
            reply: OpenReply { assembler, ..OpenReply::default() },
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
        self.reply.ending == Ending::Done || self.reply.error.is_some()
    }

    /// Whether the server gave a finish reason: all that may follow are token counts and `[DONE]`.
    pub fn has_finish_reason(&self) -> bool {
        self.reply.finish_reason.is_some()
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
        let transport_error = match end {
            End::Clean => None,
            End::Broken { error } => Some(error),
        };
        let body_start = (!self.reply.is_recognised() && !self.reply.body_start.is_empty())
            .then(|| text_of_body(&self.reply.body_start));
        let skipped_frames = self.reply.skipped_frames;
        events.push(ChatEvent::Ended { reply: self.reply.judge(transport_error.is_some()) });
        StreamNotes { body_start, transport_error, skipped_frames }
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

impl OpenReply {
    fn on_frame(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) {
        if self.is_full {
            return;
        }
        match frame.kind {
            FrameKind::Error => self.set_error(|| classify_stream_error(frame.data)),
            FrameKind::Data => self.on_data(frame.data, sink),
        }
    }

    fn on_data(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        if let Ok(chunk) = decode_chunk(data) {
            return self.on_chunk(&chunk, data, sink);
        }
        match data.trim_ascii() {
            b"" => return,
            b"[DONE]" => {
                self.ending = Ending::Done;
                return;
            }
            _ => {}
        }
        if let Some(repaired) = repair_json(data)
            && let Ok(chunk) = decode_chunk(repaired.as_bytes())
        {
            return self.on_chunk(&chunk, repaired.as_bytes(), sink);
        }
        if data.contains(&b'\n') {
            // Events that a server put on lines of their own but did not part by blank lines.
            for line in data.split(|&byte| byte == b'\n') {
                self.on_data(line, sink);
                if self.is_full {
                    return;
                }
            }
            return;
        }
        self.skipped_frames += 1;
    }

    /// A body that is JSON: a whole completion, an error, or chunks one after another without SSE around them.
    fn on_json_body(&mut self, body: &[u8], sink: &mut Sink<'_>) {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        let mut values = serde_json::Deserializer::from_slice(body).into_iter::<IgnoredAny>();
        while !self.is_full {
            let start = values.byte_offset();
            let found = values.next();
            let value = body.get(start..values.byte_offset()).unwrap_or_default();
            match found {
                Some(Ok(_)) => self.on_json_value(value, sink),
                Some(Err(error)) => {
                    if error.is_eof() {
                        self.ending = Ending::Cut;
                    }
                    return;
                }
                None => break,
            }
        }
        // A message is whole by being JSON; chunks without SSE around them still have to say that they are over.
        if self.seen == Seen::Message {
            self.ending = Ending::Done;
        }
    }

    fn on_json_value(&mut self, value: &[u8], sink: &mut Sink<'_>) {
        let seen_before = self.seen;
        if value.trim_ascii_start().starts_with(b"[") {
            // Gemini sends its errors in a list.
            if let Ok(items) = serde_json::from_slice::<Vec<Value>>(value) {
                for item in items {
                    self.on_data(item.to_string().as_bytes(), sink);
                }
            }
            return;
        }
        self.on_data(value, sink);
        if self.seen == seen_before
            && self.error.is_none()
            && let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(value)
            && ["detail", "message"].iter().any(|name| members.contains_key(*name))
        {
            self.set_error(|| classify_stream_error(value));
        }
    }

    /// `data` is the chunk's JSON.
    fn on_chunk(&mut self, chunk: &Chunk<'_>, data: &[u8], sink: &mut Sink<'_>) {
        if chunk.has_error() {
            self.set_error(|| classify_stream_error(data));
        }
        if self.model.is_none() {
            self.model = chunk.model.as_text().map(str::to_owned);
        }
        if let Some(usage) = read_usage(&chunk.usage) {
            self.usage = Some(usage);
        }
        if let Loose::Object(_) = chunk.prompt_progress {
            let count = |name| chunk.prompt_progress.get(name).and_then(Loose::as_count);
            if let (Some(processed), Some(total)) = (count("processed"), count("total")) {
                sink.push(ChatEvent::Progress { processed, total });
            }
        }
        for choice in chunk.choices.iter().filter(|choice| choice.is_first()) {
            if !self.is_full {
                self.on_choice(choice, sink);
            }
        }
    }

    fn on_choice(&mut self, choice: &Choice<'_>, sink: &mut Sink<'_>) {
        // A last chunk may repeat as a message what came in deltas.
        let is_new = !self.has_text && self.assembler.is_empty();
        self.seen = self.seen.max(if choice.message.is_some() { Seen::Message } else { Seen::Choice });
        if let Some(delta) = &choice.delta {
            self.on_delta(delta, sink);
        } else if let Some(message) = choice.message.as_ref().filter(|_| is_new) {
            self.on_delta(message, sink);
        } else if let Some(text) = choice.text.as_text() {
            self.on_text(text, sink);
        }
        if let Some(reason) = choice.finish_reason.as_text() {
            self.finish_reason = Some(reason.to_owned());
        }
        if choice.has_error() {
            self.set_error(|| classify_stream_error(choice.error.to_json().as_bytes()));
        }
    }

    fn on_delta(&mut self, delta: &Delta<'_>, sink: &mut Sink<'_>) {
        let reasoning = delta.reasoning();
        let content = delta.content();
        if !self.has_room_for(reasoning.len() + content.thinking.len() + content.text.len()) {
            return;
        }
        sink.push_reasoning(&reasoning);
        sink.push_reasoning(&content.thinking);
        self.push_text(&content.text, sink);
        let room = MAX_REPLY_BYTES - self.size;
        let mut on_call = |index: usize, name: &str| sink.push_call(index, name);
        let taken = self.assembler.on_tool_calls(&delta.tool_calls, room, &mut on_call).and_then(|size| {
            let room = room.saturating_sub(size);
            Ok(size + self.assembler.on_function_call(&delta.function_call, room, &mut on_call)?)
        });
        match taken {
            Ok(size) => self.size += size,
            Err(TooMuch::Calls) => self.on_limit(too_many_calls()),
            Err(TooMuch::Bytes) => self.on_limit(too_long()),
        }
    }

    fn on_text(&mut self, text: &str, sink: &mut Sink<'_>) {
        if self.has_room_for(text.len()) {
            self.push_text(text, sink);
        }
    }

    fn push_text(&mut self, text: &str, sink: &mut Sink<'_>) {
        self.has_text |= !text.is_empty();
        sink.push_text(text);
    }

    /// Counts `len` more bytes, or ends the reply.
    fn has_room_for(&mut self, len: usize) -> bool {
        if self.size + len > MAX_REPLY_BYTES {
            self.on_limit(too_long());
            return false;
        }
        self.size += len;
        true
    }

    fn on_limit(&mut self, message: String) {
        self.is_full = true;
        self.set_error(|| own_error(message));
    }

    fn on_too_large(&mut self, error: EventTooLarge) {
        self.set_error(|| own_error(error.to_string()));
    }

    /// The first error tells the cause; later ones are its consequences.
    fn set_error(&mut self, error: impl FnOnce() -> ServerError) {
        self.error.get_or_insert_with(error);
    }

    fn is_recognised(&self) -> bool {
        self.seen != Seen::Nothing || self.error.is_some()
    }

    fn keep_body_start(&mut self, bytes: &[u8]) {
        let room = MAX_MESSAGE_BYTES.saturating_sub(self.body_start.len());
        if room > 0 && !self.is_recognised() {
            self.body_start.extend(bytes.iter().take(room));
        }
    }

    fn judge(self, is_broken: bool) -> Reply {
        let is_over = self.finish_reason.is_some() || self.ending == Ending::Done;
        let is_length = self.finish_reason.as_deref() == Some("length");
        let assembled = self.assembler.finish(is_over && !is_length);
        let status = if let Some(error) = self.error {
            ReplyStatus::ServerError { error }
        } else if self.finish_reason.as_deref() == Some("error") {
            ReplyStatus::ServerError {
                error: own_error(String::from("the server ended the reply with the finish reason `error`")),
            }
        } else if assembled.is_cut {
            ReplyStatus::ServerError { error: own_error(too_many_calls()) }
        } else if self.ending == Ending::Cut || (is_broken && !is_over) {
            ReplyStatus::Incomplete
        } else if assembled.truncated {
            ReplyStatus::CallTruncated
        } else if self.seen == Seen::Nothing {
            ReplyStatus::Empty
        } else if is_over || (!assembled.calls.is_empty() && !assembled.malformed) {
            ReplyStatus::Complete
        } else {
            ReplyStatus::Incomplete
        };
        Reply {
            status,
            calls: assembled.calls,
            finish_reason: self.finish_reason,
            usage: self.usage,
            model: self.model,
        }
    }
}

fn own_error(message: String) -> ServerError {
    ServerError { kind: ServerErrorKind::Server, message, code: None, failed_generation: None }
}

fn too_many_calls() -> String {
    format!("the reply makes more than {MAX_CALLS} tool calls; what followed was not read")
}

fn too_long() -> String {
    format!("the reply is longer than {} MiB; what followed was not read", MAX_REPLY_BYTES >> 20)
}

fn read_usage(usage: &Loose<'_>) -> Option<Usage> {
    let prompt_tokens = usage.get("prompt_tokens").and_then(Loose::as_count);
    let completion_tokens = usage.get("completion_tokens").and_then(Loose::as_count);
    (prompt_tokens.is_some() || completion_tokens.is_some()).then(|| Usage {
        prompt_tokens: prompt_tokens.unwrap_or(0),
        completion_tokens: completion_tokens.unwrap_or(0),
    })
}
